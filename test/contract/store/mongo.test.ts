import { useContractStores } from "../../support/mongo-contract.js";
import { describeStore } from "./suite.js";

describeStore("MongoDB", useContractStores().open);
