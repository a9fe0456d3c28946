import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { generateKey } from "../../src/auth/keys.js";
import type { RequestContext, Token } from "../../src/client/check-request.js";
import { createGuard } from "../../src/client/create-guard.js";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import type { Decision } from "../../src/client/decision.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";
import { createGuardFromParts, type Guard } from "../../src/client/guard.js";
import { newId } from "../../src/lib/uuid.js";
import { createFakeService, type FakeService, settle } from "./fake-service.js";

const maxStaleness = 2_000;
const permission = "token:read";
const applicationId = newId(0);
const sessionId = newId(1);
const key = generateKey("prv", applicationId);
const sessionKey = generateKey("ses", sessionId);
const checkedAt = timestampFromMs(5_000_000);
const allowed = {
  allowed: true,
  transform: "mask",
  decidedBy: { permission },
  applicationId,
  checkedAt,
};
const denied = {
  allowed: false,
  reason: "permission_missing",
  detail: "No.",
  applicationId,
  checkedAt,
};

let service: FakeService;
let guard: Guard;
let clock: number;

beforeEach(async () => {
  service = createFakeService();
  clock = 1_000;
  const cache = createDecisionCache<Decision>({ maxEntries: 100, maxAge: 60_000 });
  const { access } = service;
  const now = () => clock;
  const watch = startCredentialWatch({
    access,
    heartbeat: 500,
    onChange: cache.invalidate,
    onReset: cache.clear,
    now,
    sleep: settle,
  });
  guard = createGuardFromParts({ access, watch, cache, maxStaleness, timeout: 1_000, now });
  await receive({ completeUntil: 0 });
});

afterEach(() => guard.close());

async function receive(message: Parameters<FakeService["streams"][number]["send"]>[0]) {
  service.streams.at(-1)?.send(message);
  await settle();
}

/** Advances the clock without a message. */
async function advance(milliseconds: number) {
  clock += milliseconds;
}

/** Advances the clock with a heartbeat. */
async function sendHeartbeat(milliseconds: number) {
  clock += milliseconds;
  await receive({ completeUntil: clock - 1_000 });
}

function lastCheck() {
  const check = service.checks.at(-1);
  if (!check) {
    throw new Error("no check was sent");
  }
  return check;
}

/** Checks a key, with this response of the service. */
async function runCheck(
  response: Parameters<ReturnType<typeof lastCheck>["respond"]>[0],
  principal = key,
) {
  const pending = guard.check(principal, permission);
  await settle();
  lastCheck().respond(response);
  return pending;
}

/** Checks a key in a context, with this response if the service is called. Returns the reason and the source. */
async function checkFrom(
  context: RequestContext,
  response: Parameters<typeof runCheck>[0],
): Promise<string> {
  const count = service.checks.length;
  const pending = guard.check(key, permission, undefined, context);
  await settle();
  if (service.checks.length > count) {
    expect(lastCheck().request).toMatchObject(context);
    lastCheck().respond(response);
  }
  const { source, reason = "allowed" } = await pending;
  return `${reason} by ${source}`;
}

describe("a decision that depends on the request context", () => {
  const origin = "https://shop.example.com";
  const address = "203.0.113.7";
  const wrongOrigin = { ...denied, reason: "origin_not_allowed", dependsOnOrigin: true };
  const wrongAddress = { ...denied, reason: "address_not_allowed", dependsOnAddress: true };

  it("is cached for its origin only, for any address", async () => {
    const allowedHere = { ...allowed, dependsOnOrigin: true };
    expect(await checkFrom({ origin, address }, allowedHere)).toBe("allowed by service");
    expect(await checkFrom({ origin, address: "::1" }, wrongOrigin)).toBe("allowed by cache");
    const other = { origin: "https://shop.example.net", address };
    expect(await checkFrom(other, wrongOrigin)).toBe("origin_not_allowed by service");
    expect(await checkFrom({ address }, wrongOrigin)).toBe("origin_not_allowed by service");
    expect(await checkFrom({ origin: "" }, wrongOrigin)).toBe("origin_not_allowed by service");
    for (const [context, expected] of [
      [{ origin }, "allowed by cache"],
      [other, "origin_not_allowed by cache"],
      [{}, "origin_not_allowed by cache"],
    ] as const) {
      expect(await checkFrom(context, allowed)).toBe(expected);
    }
  });

  it("is cached for its address only, for any origin", async () => {
    const allowedHere = { ...allowed, dependsOnAddress: true };
    expect(await checkFrom({ address }, allowedHere)).toBe("allowed by service");
    expect(await checkFrom({ address, origin }, wrongAddress)).toBe("allowed by cache");
    expect(await checkFrom({ address: "::1" }, wrongAddress)).toBe(
      "address_not_allowed by service",
    );
    expect(await checkFrom({}, wrongAddress)).toBe("address_not_allowed by service");
    expect(await checkFrom({ address }, wrongAddress)).toBe("allowed by cache");
  });

  it("is cached for its address, whatever the port", async () => {
    const allowedHere = { ...allowed, dependsOnAddress: true };
    expect(await checkFrom({ address: `${address}:4312` }, allowedHere)).toBe("allowed by service");
    for (const same of [address, `${address}:80`, `[::ffff:${address}]:443`]) {
      expect(await checkFrom({ address: same }, wrongAddress)).toBe("allowed by cache");
    }
    for (const other of ["203.0.113.8:4312", "unix:", `${address}:x`]) {
      expect(await checkFrom({ address: other }, wrongAddress)).toBe(
        "address_not_allowed by service",
      );
    }
  });

  it("is cached for both if it depends on both", async () => {
    const both = { dependsOnOrigin: true, dependsOnAddress: true };
    expect(await checkFrom({ origin, address }, { ...allowed, ...both })).toBe(
      "allowed by service",
    );
    for (const context of [{ origin }, { address }, { origin: address, address: origin }]) {
      expect(await checkFrom(context, { ...wrongOrigin, ...both })).toBe(
        "origin_not_allowed by service",
      );
    }
    expect(await checkFrom({ origin, address }, wrongOrigin)).toBe("allowed by cache");
  });

  it("is not shared with pending checks of another context", async () => {
    const pending = [{ origin }, { origin }, { origin: "null" }, {}].map((context) =>
      guard.check(key, permission, undefined, context),
    );
    await settle();
    expect(service.checks.map(({ request }) => request.origin)).toEqual([
      origin,
      "null",
      undefined,
    ]);
    const [first, ...others] = service.checks;
    first?.respond({ ...allowed, dependsOnOrigin: true });
    for (const check of others) {
      check.respond(wrongOrigin);
    }
    const decisions = await Promise.all(pending);
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false, false]);
  });

  it("is invalidated for every context when its application changes", async () => {
    await checkFrom({ origin }, { ...allowed, dependsOnOrigin: true });
    await checkFrom({}, wrongOrigin);
    await receive({ changed: [applicationId], completeUntil: 0 });
    expect(await checkFrom({ origin }, wrongOrigin)).toBe("origin_not_allowed by service");
    await receive({ changed: [applicationId], completeUntil: 0 });
    expect(await checkFrom({}, allowed)).toBe("allowed by service");
    expect(await checkFrom({ origin }, wrongOrigin)).toBe("allowed by cache");
  });

  it.each([
    ["too long", { origin: "x".repeat(1_001), address: "x".repeat(1_001) }],
    ["a lone surrogate", { origin: "\ud800", address: "\udc00" }],
    ["null", { origin: null, address: null }],
  ])("is requested without a context that is %s", async (_case, context) => {
    const pending = guard.check(key, permission, undefined, context as RequestContext);
    await settle();
    const { origin, address } = lastCheck().request;
    expect([origin, address]).toEqual([undefined, undefined]);
    lastCheck().respond(wrongOrigin);
    expect(await pending).toMatchObject({ reason: "origin_not_allowed" });
  });

  it.each([[{ origin: 1 }], [{ address: ["::1"] }], ["::1"]])(
    "is denied without a call for the context %p",
    async (context) => {
      const decision = await guard.check(key, permission, undefined, context as RequestContext);
      expect(decision).toMatchObject({ reason: "invalid_request", source: "guard" });
      expect(service.checks).toEqual([]);
    },
  );
});

describe("a decision", () => {
  it("is requested from the service once, then cached", async () => {
    const first = await runCheck(allowed);
    const second = await guard.check(key, permission);
    expect(first).toMatchObject({ allowed: true, transform: "mask", source: "service" });
    expect(second).toEqual({ ...first, source: "cache", staleness: expect.any(Number) });
    expect(service.checks).toHaveLength(1);
  });

  it("includes the reason of a denial, also from the cache", async () => {
    await runCheck(denied);
    const decision = await guard.check(key, permission);
    const { reason, detail } = denied;
    expect(decision).toMatchObject({ allowed: false, reason, detail, source: "cache" });
  });

  it("reports its staleness from the service", async () => {
    const pending = guard.check(key, permission);
    await settle();
    clock += 700;
    lastCheck().respond(allowed);
    expect(await pending).toMatchObject({ source: "service", staleness: 700 });
  });

  it("reports its staleness from the cache", async () => {
    await runCheck(allowed);
    clock += 700;
    const { source, staleness } = await guard.check(key, permission);
    expect(source).toBe("cache");
    expect(staleness).toBeGreaterThanOrEqual(700);
    expect(staleness).toBeLessThan(705);
  });

  it("differs by key, permission and token", async () => {
    await runCheck(allowed);
    const others: [string, string, Token?][] = [
      [sessionKey, permission],
      [key, "token:use"],
      [key, permission, { id: "a" }],
      [key, permission, { container: "a" }],
      [key, permission, { id: "a", container: "b" }],
      [key, permission, { id: "b", container: "a" }],
    ];
    for (const other of others) {
      const pending = guard.check(...other);
      await settle();
      lastCheck().respond(denied);
      expect(await pending).toMatchObject({ allowed: false, source: "service" });
    }
  });

  it("is shared by all contexts if it does not depend on them", async () => {
    await runCheck(allowed);
    for (const context of [
      {},
      { origin: "null" },
      { address: "::1" },
      { origin: "", address: "" },
    ]) {
      expect((await guard.check(key, permission, undefined, context)).source).toBe("cache");
    }
    expect(service.checks).toHaveLength(1);
  });

  it("uses the token as it was at the time of the call", async () => {
    const token = { id: "a" };
    const pending = guard.check(key, permission, token);
    token.id = "b";
    await settle();
    lastCheck().respond(allowed);
    await pending;
    expect(lastCheck().request.token?.id).toBe("a");
    const other = guard.check(key, permission, token);
    await settle();
    expect(lastCheck().request.token?.id).toBe("b");
    lastCheck().respond(denied);
    expect(await other).toMatchObject({ allowed: false });
  });

  it("distinguishes tokens with the same JSON", async () => {
    class Card {
      readonly #id: string;
      constructor(id: string) {
        this.#id = id;
      }
      get id() {
        return this.#id;
      }
      toJSON() {
        return {};
      }
    }
    const pending = guard.check(key, permission, new Card("a"));
    await settle();
    lastCheck().respond(allowed);
    expect(await pending).toMatchObject({ allowed: true });
    const other = guard.check(key, permission, new Card("b"));
    await settle();
    lastCheck().respond(denied);
    expect(await other).toMatchObject({ allowed: false });
  });
});

describe("a cached decision", () => {
  it("is used up to the maximum staleness", async () => {
    await runCheck(allowed);
    clock += maxStaleness - 1;
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
    clock += 1;
    expect(await runCheck(denied)).toMatchObject({ allowed: false, source: "service" });
  });

  it("is used again after the stream caught up", async () => {
    await runCheck(allowed);
    await sendHeartbeat(maxStaleness * 2);
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("is not used if the latest heartbeat was delayed", async () => {
    await runCheck(allowed);
    clock += 60_000;
    await receive({ completeUntil: 500 });
    expect(await runCheck(denied)).toMatchObject({ allowed: false, source: "service" });
  });

  it("expires with its principal, counted from the request", async () => {
    const expiresAt = timestampFromMs(5_000_300);
    const pending = guard.check(key, permission);
    await settle();
    clock += 100;
    lastCheck().respond({ ...allowed, expiresAt });
    await pending;
    clock += 199;
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
    clock += 1;
    expect(await runCheck({ ...denied, reason: "expired" })).toMatchObject({ source: "service" });
  });

  it("stays cached for an expired principal", async () => {
    await runCheck({ ...denied, reason: "expired", expiresAt: timestampFromMs(4_000_000) });
    const decision = await guard.check(key, permission);
    expect(decision).toMatchObject({ reason: "expired", source: "cache" });
  });

  it("is not stored if the response has no checked_at", async () => {
    const { checkedAt: _, ...unstamped } = allowed;
    await runCheck({ ...unstamped, expiresAt: timestampFromMs(9_000_000) });
    expect(await runCheck(denied)).toMatchObject({ source: "service" });
  });

  it.each([
    ["its application changes", { changed: [applicationId] }],
    ["the stream is reset", { reset: true }],
    ["a change of an unknown kind arrives", { changes: [{ kind: "merged", applicationId: "b" }] }],
    ["a change without a known id arrives", { changes: [{ kind: "updated" }] }],
  ])("is invalidated when %s", async (_, message) => {
    await runCheck(allowed);
    await receive(message);
    expect(await runCheck(denied)).toMatchObject({ allowed: false, source: "service" });
  });

  it("stays when another application changes", async () => {
    await runCheck(allowed);
    await receive({ changed: [newId(2)] });
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("is invalidated for a session when its application changes", async () => {
    await runCheck({ ...allowed, sessionId }, sessionKey);
    await receive({ changed: [applicationId] });
    expect(await runCheck(denied, sessionKey)).toMatchObject({ allowed: false, source: "service" });
  });

  it("is invalidated for a pending session when it is authorized", async () => {
    await runCheck({ ...denied, reason: "not_authorized", sessionId }, sessionKey);
    await receive({ changes: [{ kind: "authorized", applicationId, sessionId }] });
    expect(await runCheck({ ...allowed, sessionId }, sessionKey)).toMatchObject({ allowed: true });
  });

  it("is invalidated for an unknown key when its owner changes", async () => {
    await runCheck({ allowed: false, reason: "unknown_key", detail: "Unknown key.", checkedAt });
    await receive({ changed: [applicationId] });
    expect(await runCheck(allowed)).toMatchObject({ allowed: true, source: "service" });
  });
});

describe("a pending check", () => {
  async function receiveMeanwhile(message: Parameters<typeof receive>[0]) {
    const pending = guard.check(key, permission);
    await settle();
    await receive(message);
    lastCheck().respond(allowed);
    expect(await pending).toMatchObject({ allowed: true, source: "service" });
    return guard.check(key, permission);
  }

  it.each([
    ["its application changes", { changed: [applicationId] }],
    ["the stream is reset", { reset: true }],
    ["a change of an unknown kind arrives", { changes: [{ kind: "merged", applicationId: "b" }] }],
    ["a change without a known id arrives", { changes: [{ kind: "updated" }] }],
  ])("is not cached if meanwhile %s", async (_, message) => {
    const next = receiveMeanwhile(message);
    await settle();
    await settle();
    lastCheck().respond(denied);
    expect(await next).toMatchObject({ allowed: false, source: "service" });
  });

  it("is cached if meanwhile another principal changes", async () => {
    const next = await receiveMeanwhile({ changed: [newId(3), newId(4)] });
    expect(next).toMatchObject({ source: "cache" });
  });

  it("is shared by identical checks", async () => {
    const pending = Array.from({ length: 50 }, () => guard.check(key, permission));
    await settle();
    expect(service.checks).toHaveLength(1);
    lastCheck().respond(allowed);
    const decisions = await Promise.all(pending);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
  });

  it("reports its staleness from the first request", async () => {
    const first = guard.check(key, permission);
    await settle();
    clock += 500;
    const second = guard.check(key, permission);
    clock += 100;
    lastCheck().respond(allowed);
    expect([(await first).staleness, (await second).staleness]).toEqual([600, 600]);
  });

  it.each([
    ["a change arrived since", () => advance(0), () => receive({ changed: [newId(5)] })],
    ["it is too old", () => advance(0), () => sendHeartbeat(maxStaleness + 1)],
    ["the stream is silent for too long", () => advance(maxStaleness), () => advance(1)],
  ])("is not shared if %s", async (_, before, meanwhile) => {
    await before();
    const first = guard.check(key, permission);
    await settle();
    await meanwhile();
    const second = guard.check(key, permission);
    await settle();
    expect(service.checks).toHaveLength(2);
    service.checks[1]?.respond(denied);
    service.checks[0]?.respond(allowed);
    expect([(await first).allowed, (await second).allowed]).toEqual([true, false]);
  });

  it("fails for all waiting checks, but not for later ones", async () => {
    const pending = [guard.check(key, permission), guard.check(key, permission)];
    await settle();
    lastCheck().fail(new ConnectError("ECONNRESET", Code.Unavailable));
    for (const decision of await Promise.all(pending)) {
      expect(decision).toMatchObject({ allowed: false, reason: "unavailable" });
    }
    expect(await runCheck(allowed)).toMatchObject({ allowed: true });
  });

  it("is not cached if the guard is closed meanwhile", async () => {
    const pending = guard.check(key, permission);
    await settle();
    await guard.close();
    lastCheck().respond(allowed);
    await pending;
    expect(await guard.check(key, permission)).toMatchObject({ allowed: false });
  });
});

describe("a guard", () => {
  it("fails closed if the service returns an error", async () => {
    const pending = guard.check(key, permission);
    await settle();
    lastCheck().fail(new ConnectError("ECONNRESET", Code.Unavailable));
    expect(await pending).toEqual({
      allowed: false,
      reason: "unavailable",
      detail: expect.stringContaining("ECONNRESET"),
      source: "guard",
      staleness: 0,
    });
  });

  it("fails closed if it is disconnected and its cache is too old", async () => {
    await runCheck(allowed);
    clock += maxStaleness;
    const pending = guard.check(key, permission);
    await settle();
    expect(service.checks).toHaveLength(2);
    lastCheck().fail(new ConnectError("ECONNRESET", Code.Unavailable));
    expect(await pending).toMatchObject({ allowed: false, reason: "unavailable", source: "guard" });
  });

  it("reports a check that the service refuses as invalid_request", async () => {
    const pending = guard.check(key, "nonsense");
    await settle();
    lastCheck().fail(new ConnectError("permission: must be", Code.InvalidArgument));
    expect(await pending).toMatchObject({ allowed: false, reason: "invalid_request" });
  });

  it("denies everything once closed", async () => {
    await runCheck(allowed);
    await guard.close();
    expect(await guard.check(key, permission)).toMatchObject({
      allowed: false,
      reason: "unavailable",
      source: "guard",
    });
  });

  const throwing = {
    get id(): string {
      throw new Error("a bug in the caller");
    },
  };
  it.each<[string, unknown, unknown, unknown?]>([
    ["no key", undefined, permission],
    ["null", null, permission],
    ["an object as the key", { length: 68, startsWith: () => true }, permission],
    ["an empty key", "", permission],
    ["a nonce", generateKey("non", sessionId), permission],
    ["a mistyped key", `${key.slice(0, -1)}-`, permission],
    ["a huge key", "lk_prv_".repeat(1_000_000), permission],
    ["lone surrogates as the key", "\ud800".repeat(68), permission],
    ["no permission", key, undefined],
    ["a symbol as the permission", key, Symbol("token:read")],
    ["a huge permission", key, "a".repeat(10_000_000)],
    ["a lone surrogate in the permission", key, "token:\ud800"],
    ["a string as the token", key, permission, "card-1"],
    ["an empty string as the token", key, permission, ""],
    ["an empty token", key, permission, {}],
    ["a number as the token id", key, permission, { id: 1n }],
    ["null as the token container", key, permission, { id: "a", container: null }],
    ["a lone surrogate in the token id", key, permission, { id: "a\udfff" }],
    ["a token that throws", key, permission, throwing],
  ])("denies %s without a call, and does not throw", async (_, ...[key, permission, token]) => {
    const decision = await guard.check(key as string, permission as string, token as Token);
    expect(decision).toMatchObject({ allowed: false, source: "guard", detail: expect.any(String) });
    expect(service.checks).toHaveLength(0);
  });

  it("denies a request without a key like one with an empty key", async () => {
    const [missing, empty] = [
      await guard.check(undefined, permission),
      await guard.check("", permission),
    ];
    expect(missing).toMatchObject({ reason: "unknown_key", detail: "The request has no key." });
    expect(missing).toEqual(empty);
    expect(service.checks).toHaveLength(0);
  });

  it("treats null as no token", async () => {
    await runCheck(allowed);
    const decision = await guard.check(key, permission, null as unknown as Token);
    expect(decision).toMatchObject({ source: "cache" });
  });

  it.each(["", undefined])("throws at once without a key of its own: %p", (key) => {
    expect(() => createGuard({ url: "http://127.0.0.1:1", key })).toThrow(
      "The option key is empty",
    );
  });

  it.each([
    { maxStaleness: Number.NaN },
    { maxStaleness: Number.POSITIVE_INFINITY },
    { maxStaleness: -1 },
    { maxEntries: Number.POSITIVE_INFINITY },
    { maxAge: Number.NaN },
    { timeout: 0 },
    { timeout: 2 ** 31 },
  ])("refuses the options %p", (options) => {
    const create = () => createGuard({ url: "http://127.0.0.1:1", key, ...options });
    expect(create).toThrow(RangeError);
  });
});
