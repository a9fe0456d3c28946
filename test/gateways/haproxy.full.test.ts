import { describeGateway } from "./suite.js";

describeGateway("haproxy");
