/** The client for Node: `latchkey/client`. */

export type { ClientOptions } from "../contract/client-interceptors.js";
export { type ProblemReport, problemOf } from "../contract/problem-report.js";
export type { GuardAnswer, Place, Token } from "./check-request.js";
export { createClientOn, type LatchkeyClient } from "./client.js";
export {
  createGuard,
  createLatchkeyClient,
  type GuardOptions,
  type LatchkeyNodeClient,
} from "./create-guard.js";
export type { Guard } from "./guard.js";
