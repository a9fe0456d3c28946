import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { makeKey } from "../../src/auth/keys.js";
import type { RequestContext, Token } from "../../src/client/check-request.js";
import { createGuard } from "../../src/client/create-guard.js";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import type { Decision } from "../../src/client/decision.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";
import { createGuardFromParts, type Guard } from "../../src/client/guard.js";
import { newId } from "../../src/lib/uuid.js";
import { createScriptedService, type ScriptedService, settle } from "./scripted-service.js";

const maxStaleness = 2_000;
const permission = "token:read";
const applicationId = newId(0);
const sessionId = newId(1);
const key = makeKey("prv", applicationId);
const sessionKey = makeKey("ses", sessionId);
const checkedAt = timestampFromMs(5_000_000);
const yes = {
  allowed: true,
  transform: "mask",
  decidedBy: { permission },
  applicationId,
  checkedAt,
};
const no = {
  allowed: false,
  reason: "permission_missing",
  detail: "No.",
  applicationId,
  checkedAt,
};

let service: ScriptedService;
let guard: Guard;
let clock: number;

beforeEach(async () => {
  service = createScriptedService();
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
  await hear({ completeUntil: 0 });
});

afterEach(() => guard.close());

async function hear(message: Parameters<ScriptedService["streams"][number]["send"]>[0]) {
  service.streams.at(-1)?.send(message);
  await settle();
}

/** Lets time pass, and hears nothing. */
async function wait(milliseconds: number) {
  clock += milliseconds;
}

/** Lets time pass, and hears that all is known. */
async function pass(milliseconds: number) {
  clock += milliseconds;
  await hear({ completeUntil: clock - 1_000 });
}

function lastCheck() {
  const check = service.checks.at(-1);
  if (!check) {
    throw new Error("nothing was asked");
  }
  return check;
}

/** Asks, and answers for the service. */
async function ask(answer: Parameters<ReturnType<typeof lastCheck>["answer"]>[0], subject = key) {
  const asked = guard.check(subject, permission);
  await settle();
  lastCheck().answer(answer);
  return asked;
}

/** Asks from a place, and answers for the service where it is asked. Tells which of them answered. */
async function askFrom(place: RequestContext, answer: Parameters<typeof ask>[0]): Promise<string> {
  const count = service.checks.length;
  const asked = guard.check(key, permission, undefined, place);
  await settle();
  if (service.checks.length > count) {
    expect(lastCheck().request).toMatchObject(place);
    lastCheck().answer(answer);
  }
  const { source, reason = "allowed" } = await asked;
  return `${reason} by ${source}`;
}

describe("a decision that depends on the request context", () => {
  const origin = "https://shop.example.com";
  const address = "203.0.113.7";
  const stray = { ...no, reason: "origin_not_allowed", dependsOnOrigin: true };
  const remote = { ...no, reason: "address_not_allowed", dependsOnAddress: true };

  it("is cached for its origin only, for any address", async () => {
    const here = { ...yes, dependsOnOrigin: true };
    expect(await askFrom({ origin, address }, here)).toBe("allowed by service");
    expect(await askFrom({ origin, address: "::1" }, stray)).toBe("allowed by cache");
    const other = { origin: "https://shop.example.net", address };
    expect(await askFrom(other, stray)).toBe("origin_not_allowed by service");
    expect(await askFrom({ address }, stray)).toBe("origin_not_allowed by service");
    expect(await askFrom({ origin: "" }, stray)).toBe("origin_not_allowed by service");
    for (const [place, known] of [
      [{ origin }, "allowed by cache"],
      [other, "origin_not_allowed by cache"],
      [{}, "origin_not_allowed by cache"],
    ] as const) {
      expect(await askFrom(place, yes)).toBe(known);
    }
  });

  it("is cached for its address only, for any origin", async () => {
    const here = { ...yes, dependsOnAddress: true };
    expect(await askFrom({ address }, here)).toBe("allowed by service");
    expect(await askFrom({ address, origin }, remote)).toBe("allowed by cache");
    expect(await askFrom({ address: "::1" }, remote)).toBe("address_not_allowed by service");
    expect(await askFrom({}, remote)).toBe("address_not_allowed by service");
    expect(await askFrom({ address }, remote)).toBe("allowed by cache");
  });

  it("is cached for both if it depends on both", async () => {
    const both = { dependsOnOrigin: true, dependsOnAddress: true };
    expect(await askFrom({ origin, address }, { ...yes, ...both })).toBe("allowed by service");
    for (const place of [{ origin }, { address }, { origin: address, address: origin }]) {
      expect(await askFrom(place, { ...stray, ...both })).toBe("origin_not_allowed by service");
    }
    expect(await askFrom({ origin, address }, stray)).toBe("allowed by cache");
  });

  it("is not shared with pending checks of another context", async () => {
    const asked = [{ origin }, { origin }, { origin: "null" }, {}].map((place) =>
      guard.check(key, permission, undefined, place),
    );
    await settle();
    expect(service.checks.map(({ request }) => request.origin)).toEqual([
      origin,
      "null",
      undefined,
    ]);
    const [here, ...elsewhere] = service.checks;
    here?.answer({ ...yes, dependsOnOrigin: true });
    for (const check of elsewhere) {
      check.answer(stray);
    }
    const answers = await Promise.all(asked);
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false, false]);
  });

  it("is invalidated for every context when its application changes", async () => {
    await askFrom({ origin }, { ...yes, dependsOnOrigin: true });
    await askFrom({}, stray);
    await hear({ changed: [applicationId], completeUntil: 0 });
    expect(await askFrom({ origin }, stray)).toBe("origin_not_allowed by service");
    await hear({ changed: [applicationId], completeUntil: 0 });
    expect(await askFrom({}, yes)).toBe("allowed by service");
    expect(await askFrom({ origin }, stray)).toBe("allowed by cache");
  });

  it.each([
    ["too long", { origin: "x".repeat(1_001), address: "x".repeat(1_001) }],
    ["broken", { origin: "\ud800", address: "\udc00" }],
    ["null", { origin: null, address: null }],
  ])("is requested without a context that is %s", async (_case, place) => {
    const asked = guard.check(key, permission, undefined, place as RequestContext);
    await settle();
    const { origin, address } = lastCheck().request;
    expect([origin, address]).toEqual([undefined, undefined]);
    lastCheck().answer(stray);
    expect(await asked).toMatchObject({ reason: "origin_not_allowed" });
  });

  it.each([[{ origin: 1 }], [{ address: ["::1"] }], ["::1"]])(
    "is denied without a call for the context %p",
    async (place) => {
      const answer = await guard.check(key, permission, undefined, place as RequestContext);
      expect(answer).toMatchObject({ reason: "invalid_request", source: "guard" });
      expect(service.checks).toEqual([]);
    },
  );
});

describe("a decision", () => {
  it("comes from the service first, then from the cache", async () => {
    const first = await ask(yes);
    const second = await guard.check(key, permission);
    expect(first).toMatchObject({ allowed: true, transform: "mask", source: "service" });
    expect(second).toEqual({ ...first, source: "cache", staleness: expect.any(Number) });
    expect(service.checks).toHaveLength(1);
  });

  it("includes the reason of a denial, also from the cache", async () => {
    await ask(no);
    const answer = await guard.check(key, permission);
    const { reason, detail } = no;
    expect(answer).toMatchObject({ allowed: false, reason, detail, source: "cache" });
  });

  it("reports its staleness from the service", async () => {
    const asked = guard.check(key, permission);
    await settle();
    clock += 700;
    lastCheck().answer(yes);
    expect(await asked).toMatchObject({ source: "service", staleness: 700 });
  });

  it("reports its staleness from the cache", async () => {
    await ask(yes);
    clock += 700;
    const { source, staleness } = await guard.check(key, permission);
    expect(source).toBe("cache");
    expect(staleness).toBeGreaterThanOrEqual(700);
    expect(staleness).toBeLessThan(705);
  });

  it("differs by key, permission and token", async () => {
    await ask(yes);
    const others: [string, string, Token?][] = [
      [sessionKey, permission],
      [key, "token:use"],
      [key, permission, { id: "a" }],
      [key, permission, { container: "a" }],
      [key, permission, { id: "a", container: "b" }],
      [key, permission, { id: "b", container: "a" }],
    ];
    for (const other of others) {
      const asked = guard.check(...other);
      await settle();
      lastCheck().answer(no);
      expect(await asked).toMatchObject({ allowed: false, source: "service" });
    }
  });

  it("is shared by all contexts if it does not depend on them", async () => {
    await ask(yes);
    for (const place of [{}, { origin: "null" }, { address: "::1" }, { origin: "", address: "" }]) {
      expect((await guard.check(key, permission, undefined, place)).source).toBe("cache");
    }
    expect(service.checks).toHaveLength(1);
  });

  it("uses the token as it was at the time of the call", async () => {
    const token = { id: "a" };
    const asked = guard.check(key, permission, token);
    token.id = "b";
    await settle();
    lastCheck().answer(yes);
    await asked;
    expect(lastCheck().request.token?.id).toBe("a");
    const other = guard.check(key, permission, token);
    await settle();
    expect(lastCheck().request.token?.id).toBe("b");
    lastCheck().answer(no);
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
    const asked = guard.check(key, permission, new Card("a"));
    await settle();
    lastCheck().answer(yes);
    expect(await asked).toMatchObject({ allowed: true });
    const other = guard.check(key, permission, new Card("b"));
    await settle();
    lastCheck().answer(no);
    expect(await other).toMatchObject({ allowed: false });
  });
});

describe("a cached decision", () => {
  it("is used up to the maximum staleness", async () => {
    await ask(yes);
    clock += maxStaleness - 1;
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
    clock += 1;
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("is used again after the stream caught up", async () => {
    await ask(yes);
    await pass(maxStaleness * 2);
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("is not used because of delayed heartbeats", async () => {
    await ask(yes);
    clock += 60_000;
    await hear({ completeUntil: 500 });
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("expires with its subject, counted from the request", async () => {
    const expiresAt = timestampFromMs(5_000_300);
    const asked = guard.check(key, permission);
    await settle();
    clock += 100;
    lastCheck().answer({ ...yes, expiresAt });
    await asked;
    clock += 199;
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
    clock += 1;
    expect(await ask({ ...no, reason: "expired" })).toMatchObject({ source: "service" });
  });

  it("stays cached for an expired subject", async () => {
    await ask({ ...no, reason: "expired", expiresAt: timestampFromMs(4_000_000) });
    const answer = await guard.check(key, permission);
    expect(answer).toMatchObject({ reason: "expired", source: "cache" });
  });

  it("is not cached without the time of the check", async () => {
    const { checkedAt: _, ...unstamped } = yes;
    await ask({ ...unstamped, expiresAt: timestampFromMs(9_000_000) });
    expect(await ask(no)).toMatchObject({ source: "service" });
  });

  it.each([
    ["its application changes", { changed: [applicationId] }],
    ["the stream is reset", { reset: true }],
  ])("is invalidated when %s", async (_, message) => {
    await ask(yes);
    await hear(message);
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("stays when another application changes", async () => {
    await ask(yes);
    await hear({ changed: [newId(2)] });
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("of a session is invalidated when its application changes", async () => {
    await ask({ ...yes, sessionId }, sessionKey);
    await hear({ changed: [applicationId] });
    expect(await ask(no, sessionKey)).toMatchObject({ allowed: false, source: "service" });
  });

  it("of a pending session is invalidated when it is authorized", async () => {
    await ask({ ...no, reason: "not_authorized", sessionId }, sessionKey);
    await hear({ changes: [{ kind: "authorized", applicationId, sessionId }] });
    expect(await ask({ ...yes, sessionId }, sessionKey)).toMatchObject({ allowed: true });
  });

  it("of an unknown key is invalidated when its owner changes", async () => {
    await ask({ allowed: false, reason: "unknown_key", detail: "Who?", checkedAt });
    await hear({ changed: [applicationId] });
    expect(await ask(yes)).toMatchObject({ allowed: true, source: "service" });
  });
});

describe("a pending check", () => {
  async function hearMeanwhile(message: Parameters<typeof hear>[0]) {
    const asked = guard.check(key, permission);
    await settle();
    await hear(message);
    lastCheck().answer(yes);
    expect(await asked).toMatchObject({ allowed: true, source: "service" });
    return guard.check(key, permission);
  }

  it.each([
    ["its application changes", { changed: [applicationId] }],
    ["the stream is reset", { reset: true }],
  ])("is not cached if meanwhile %s", async (_, message) => {
    const next = hearMeanwhile(message);
    await settle();
    await settle();
    lastCheck().answer(no);
    expect(await next).toMatchObject({ allowed: false, source: "service" });
  });

  it("is cached if meanwhile another subject changes", async () => {
    const next = await hearMeanwhile({ changed: [newId(3), newId(4)] });
    expect(next).toMatchObject({ source: "cache" });
  });

  it("is shared by identical checks", async () => {
    const asked = Array.from({ length: 50 }, () => guard.check(key, permission));
    await settle();
    expect(service.checks).toHaveLength(1);
    lastCheck().answer(yes);
    const answers = await Promise.all(asked);
    expect(answers.every(({ allowed }) => allowed)).toBe(true);
  });

  it("reports its staleness from the first request", async () => {
    const first = guard.check(key, permission);
    await settle();
    clock += 500;
    const second = guard.check(key, permission);
    clock += 100;
    lastCheck().answer(yes);
    expect([(await first).staleness, (await second).staleness]).toEqual([600, 600]);
  });

  it.each([
    ["something was heard since", () => wait(0), () => hear({ changed: [newId(5)] })],
    ["it was asked too long ago", () => wait(0), () => pass(maxStaleness + 1)],
    ["nothing has been heard for too long", () => wait(maxStaleness), () => wait(1)],
  ])("is not shared if %s", async (_, happenBefore, happenMeanwhile) => {
    await happenBefore();
    const first = guard.check(key, permission);
    await settle();
    await happenMeanwhile();
    const second = guard.check(key, permission);
    await settle();
    expect(service.checks).toHaveLength(2);
    service.checks[1]?.answer(no);
    service.checks[0]?.answer(yes);
    expect([(await first).allowed, (await second).allowed]).toEqual([true, false]);
  });

  it("fails for all waiting checks, but not for later ones", async () => {
    const asked = [guard.check(key, permission), guard.check(key, permission)];
    await settle();
    lastCheck().fail(new ConnectError("gone", Code.Unavailable));
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ allowed: false, reason: "unavailable" });
    }
    expect(await ask(yes)).toMatchObject({ allowed: true });
  });

  it("is not cached if the guard is closed meanwhile", async () => {
    const asked = guard.check(key, permission);
    await settle();
    await guard.close();
    lastCheck().answer(yes);
    await asked;
    expect(await guard.check(key, permission)).toMatchObject({ allowed: false });
  });
});

describe("a guard", () => {
  it("fails closed if the service returns an error", async () => {
    const asked = guard.check(key, permission);
    await settle();
    lastCheck().fail(new ConnectError("gone", Code.Unavailable));
    expect(await asked).toEqual({
      allowed: false,
      reason: "unavailable",
      detail: expect.stringContaining("gone"),
      source: "guard",
      staleness: 0,
    });
  });

  it("fails closed if it is disconnected and its cache is too old", async () => {
    await ask(yes);
    clock += maxStaleness;
    const asked = guard.check(key, permission);
    await settle();
    expect(service.checks).toHaveLength(2);
    lastCheck().fail(new ConnectError("gone", Code.Unavailable));
    expect(await asked).toMatchObject({ allowed: false, reason: "unavailable", source: "guard" });
  });

  it("reports a check that the service refuses as invalid_request", async () => {
    const asked = guard.check(key, "nonsense");
    await settle();
    lastCheck().fail(new ConnectError("permission: must be", Code.InvalidArgument));
    expect(await asked).toMatchObject({ allowed: false, reason: "invalid_request" });
  });

  it("denies everything once closed", async () => {
    await ask(yes);
    await guard.close();
    expect(await guard.check(key, permission)).toMatchObject({
      allowed: false,
      reason: "unavailable",
      source: "guard",
    });
  });

  const throwing = {
    get id(): string {
      throw new Error("a mistake of the caller");
    },
  };
  it.each<[string, unknown, unknown, unknown?]>([
    ["no key", undefined, permission],
    ["null", null, permission],
    ["an object for a key", { length: 68, startsWith: () => true }, permission],
    ["an empty key", "", permission],
    ["a nonce", makeKey("non", sessionId), permission],
    ["a mistyped key", `${key.slice(0, -1)}-`, permission],
    ["a huge key", "lk_prv_".repeat(1_000_000), permission],
    ["half a character for a key", "\ud800".repeat(68), permission],
    ["no permission", key, undefined],
    ["a symbol for a permission", key, Symbol("token:read")],
    ["a huge permission", key, "a".repeat(10_000_000)],
    ["half a character in the permission", key, "token:\ud800"],
    ["a text for a token", key, permission, "card-1"],
    ["an empty text for a token", key, permission, ""],
    ["a token of nothing", key, permission, {}],
    ["a number for the id of the token", key, permission, { id: 1n }],
    ["null for the container of the token", key, permission, { id: "a", container: null }],
    ["half a character in the id of the token", key, permission, { id: "a\udfff" }],
    ["a token that throws", key, permission, throwing],
  ])("denies %s without a call, and does not throw", async (_, ...[key, permission, token]) => {
    const answer = await guard.check(key as string, permission as string, token as Token);
    expect(answer).toMatchObject({ allowed: false, source: "guard", detail: expect.any(String) });
    expect(service.checks).toHaveLength(0);
  });

  it("treats null as no token", async () => {
    await ask(yes);
    const answer = await guard.check(key, permission, null as unknown as Token);
    expect(answer).toMatchObject({ source: "cache" });
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
