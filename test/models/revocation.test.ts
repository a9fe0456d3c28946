import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import { type RevocationBug, revocation } from "./revocation.js";

describe("a revocation", () => {
  it.each(["subject", "application", "delete"] as const)(
    "of sessions by %s is respected by every later check",
    (revoke) => {
      expectToHold(revocation({ revoke, checks: 2 }));
    },
  );

  it("by subject refuses too much, never too little, if authorize reads the epoch from a cache", () => {
    expectToHold(revocation({ revoke: "subject", isCached: true, revocations: 2 }));
  });

  it.each<RevocationBug>([
    "stamps after the authorizing write",
    "deletes the sessions that a scan finds",
  ])("finds the planted bug: %s", (bug) => {
    expectToViolate(revocation({ revoke: "subject", bug }), "revokedSessionsAreRefused");
  });

  it("cannot end a session that read the new epoch before the acknowledgement", () => {
    const bug = "no session authorized before the acknowledgement survives";
    expectToViolate(revocation({ revoke: "subject", bug }), "revokedSessionsAreRefused");
  });
});
