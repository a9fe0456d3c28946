import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { revocation } from "./revocation.js";

it.each(["subject", "application", "delete"] as const)(
  "two revocations by %s of two sessions are respected",
  (revoke) => {
    expectToHold(revocation({ revoke, sessions: 2, revocations: 2, checks: 2 }));
  },
);
