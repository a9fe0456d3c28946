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
  ])("refuses %s", async (_case, key) => {
    const { answer, refusal } = await gate.admit({}, { key, origin: undefined });
    expect(answer).toBeUndefined();
    expect(refusal).toMatchObject({ word: "unauthenticated", status: 401 });
  });

  it.each([
    ["a text", keys.good],
    ["a list of one", [keys.good]],
  ])("takes %s", async (_case, key) => {
    const admission = await gate.admit({}, { key, origin: undefined });
    expect(admission).toMatchObject({ answer: { allowed: true } });
  });

  it.each([
    ["nothing", null, undefined],
    ["an empty list", [], undefined],
    ["a text", "https://a.example", "https://a.example"],
    ["a list of one", ["https://a.example"], "https://a.example"],
    ["several, of which none can be meant", ["https://a.example", "https://b.example"], undefined],
  ])("takes for the origin %s", async (_case, origin, asked) => {
    const guard = createScriptedGuard();
    const gate = createGate(guard, { permission: "token:read" });
    await gate.admit({}, { key: keys.good, origin, address: "::1" });
    expect(guard.places).toEqual([{ origin: asked, address: "::1" }]);
  });
});
