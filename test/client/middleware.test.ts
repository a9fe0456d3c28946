import { describe, expect, it } from "@jest/globals";
import { createGate } from "../../src/client/middleware.js";
import { createScriptedGuard, keys } from "../support/guarded-service.js";

describe("a gate", () => {
  const gate = createGate(createScriptedGuard(), { permission: "token:read" });

  it.each([
    ["nothing", undefined],
    ["nothing, in another way", null],
    ["an empty list", []],
    ["two keys that were kept apart", [keys.good, keys.good]],
    ["bytes", [Buffer.from(keys.good)]],
  ])("refuses %s", async (_case, sent) => {
    const { answer, refusal } = await gate.admit({}, sent);
    expect(answer).toBeUndefined();
    expect(refusal).toMatchObject({ word: "unauthenticated", status: 401 });
  });

  it.each([
    ["a text", keys.good],
    ["a list of one", [keys.good]],
  ])("takes %s", async (_case, sent) => {
    expect(await gate.admit({}, sent)).toMatchObject({ answer: { allowed: true } });
  });
});
