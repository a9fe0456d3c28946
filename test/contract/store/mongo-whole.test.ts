import { useContractStores } from "../../support/mongo-contract.js";
import { describeWholeStore } from "./suite.js";

describeWholeStore("MongoDB", useContractStores().openEmpty);
