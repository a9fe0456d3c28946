import { describeWholeStore } from "./store-contract.js";
import { useContractStores } from "./support/mongo-contract.js";

describeWholeStore("MongoDB", useContractStores().openEmpty);
