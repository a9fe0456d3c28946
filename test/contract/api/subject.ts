import type { Api, ApiFailure } from "../../support/api/api.js";
import type { TestServer } from "../../support/service/server.js";
import type { Refusal } from "./refused.js";

/** What the cases of the contract are about: a server, by one of its protocols. */
export interface ApiSubject {
  server(): TestServer;
  api(): Api;
  /** Checks that a call is refused for a reason, and answers how. */
  refused(call: Promise<unknown>, reason: Refusal): Promise<ApiFailure>;
}
