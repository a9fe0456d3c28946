/** The client for Node: `latchkey/client`. */
export { type ClientOptions, createClientOn, type LatchkeyClient } from "./client.js";
export { createGuard, type GuardOptions } from "./create-guard.js";
export type { Guard, GuardAnswer, Place, Token } from "./guard.js";
export { createLatchkeyClient, type LatchkeyNodeClient } from "./node-client.js";
export { type ProblemReport, problemOf } from "./problem.js";
