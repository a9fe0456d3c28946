import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import { type IdempotencyBug, idempotency } from "./idempotency.js";

type Kind = Parameters<typeof idempotency>[0]["kind"];

describe("attempts with one idempotency key", () => {
  it.each<Kind>(["create", "change", "delete"])("%s once, and all get the same reply", (kind) => {
    expectToHold(idempotency({ kind }));
  });

  it.each<[IdempotencyBug, Kind, string]>([
    ["looks up the response before it reads the record", "change", "oneEffect"],
    ["forgets the reply of the change before", "change", "oneEffect"],
    ["forgets the reply of the change before", "create", "oneEffect"],
    ["publishes the position before it stores the replies", "change", "oneEffect"],
    ["every attempt replies with its own key", "create", "repliesToOwnChange"],
    ["inserts without a deadline", "create", "oneEffect"],
    ["removes tombstones early", "create", "oneEffect"],
    ["the reservation ends under an attempt", "create", "oneEffect"],
    ["every attempt creates a record of its own", "create", "oneEffect"],
  ])("finds the planted bug: %s (%s)", (bug, kind, property) => {
    expectToViolate(idempotency({ kind, bug }), property);
  });
});
