import { describeStore } from "./store-contract.js";
import { useContractStores } from "./support/mongo-contract.js";

describeStore("MongoDB", useContractStores().open);
