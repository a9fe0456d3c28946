import { it } from "@jest/globals";
import { expectToHold } from "./checker.js";
import { idempotency } from "./idempotency.js";

it.each(["create", "change", "delete"] as const)("three attempts %s once", (kind) => {
  expectToHold(idempotency({ kind, attempts: 3 }));
});

it("attempts change once beside two other changes", () => {
  expectToHold(idempotency({ kind: "change", others: 2 }));
});
