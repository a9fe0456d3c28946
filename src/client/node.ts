/** The client for Node: `latchkey/client`. */

export type { ClientOptions } from "../contract/client-interceptors.js";
export { type ProblemReport, problemOf } from "../contract/problem-report.js";
export type { RequestContext, Token } from "./check-request.js";
export { createClientOn, type LatchkeyClient } from "./client.js";
export {
  createGuard,
  createLatchkeyClient,
  type GuardOptions,
  type LatchkeyNodeClient,
} from "./create-guard.js";
export type { Decision } from "./decision.js";
export type { Guard } from "./guard.js";
