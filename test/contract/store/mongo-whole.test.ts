import { useContractStores } from "./mongo-stores.js";
import { describeWholeStore } from "./suite.js";

describeWholeStore("MongoDB", useContractStores().openEmpty);
