import { describeGateway } from "./suite.js";

// nginx discards the body of a denial. Its configuration has bodies of its own.
describeGateway("nginx", { isRouted: false, passesOnProblems: false });
