import { useContractStores } from "./mongo-stores.js";
import { describeStoreWide } from "./suite.js";

describeStoreWide("MongoDB", useContractStores().openEmpty);
