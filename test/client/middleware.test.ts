import { describe, expect, it } from "@jest/globals";
import { createAuthorizer } from "../../src/client/middleware.js";
import { createFakeGuard, keys } from "./middleware-suite.js";

describe("createAuthorizer", () => {
  const authorizer = createAuthorizer(createFakeGuard(), { permission: "token:read" });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["an empty list", []],
    ["two keys", [keys.good, keys.good]],
    ["bytes", [Buffer.from(keys.good)]],
  ])("refuses %s", async (_case, key) => {
    const { decision, refusal } = await authorizer.authorize({}, { key, origin: undefined });
    expect(decision).toBeUndefined();
    expect(refusal).toMatchObject({ code: "unauthenticated", status: 401 });
  });

  it.each([
    ["a string", keys.good],
    ["a list of one", [keys.good]],
  ])("accepts %s", async (_case, key) => {
    const result = await authorizer.authorize({}, { key, origin: undefined });
    expect(result).toMatchObject({ decision: { allowed: true } });
  });

  it.each([
    ["nothing", null, undefined],
    ["an empty list", [], undefined],
    ["a string", "https://a.example", "https://a.example"],
    ["a list of one", ["https://a.example"], "https://a.example"],
    ["several values, which are ambiguous", ["https://a.example", "https://b.example"], undefined],
  ])("reads the origin from %s", async (_case, origin, expected) => {
    const guard = createFakeGuard();
    const authorizer = createAuthorizer(guard, { permission: "token:read" });
    await authorizer.authorize({}, { key: keys.good, origin, address: "::1" });
    expect(guard.contexts).toEqual([{ origin: expected, address: "::1" }]);
  });
});
