import { useContractStores } from "./mongo-stores.js";
import { describeStore } from "./suite.js";

describeStore("MongoDB", useContractStores().open);
