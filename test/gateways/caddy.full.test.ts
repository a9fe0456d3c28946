import { describeGateway } from "./suite.js";

describeGateway("caddy", { isRouted: false });
