import { describeGateway } from "./suite.js";

describeGateway("traefik");
