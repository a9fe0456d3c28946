import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { makeKey } from "../../src/auth/keys.js";
import type { GuardAnswer, Place, Token } from "../../src/client/check-request.js";
import { createGuard } from "../../src/client/create-guard.js";
import { startCredentialWatch } from "../../src/client/credential-watch.js";
import { createAnswerCache } from "../../src/client/decision-cache.js";
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
  const cache = createAnswerCache<GuardAnswer>({ maxEntries: 100, maxAge: 60_000 });
  const { access } = service;
  const now = () => clock;
  const watch = startCredentialWatch({
    access,
    heartbeat: 500,
    onChange: cache.forget,
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
async function askFrom(place: Place, answer: Parameters<typeof ask>[0]): Promise<string> {
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

describe("an answer that depends on a place", () => {
  const origin = "https://shop.example.com";
  const address = "203.0.113.7";
  const stray = { ...no, reason: "origin_not_allowed", dependsOnOrigin: true };
  const remote = { ...no, reason: "address_not_allowed", dependsOnAddress: true };

  it("is kept for its origin only, whatever the address", async () => {
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

  it("is kept for its address only, whatever the origin", async () => {
    const here = { ...yes, dependsOnAddress: true };
    expect(await askFrom({ address }, here)).toBe("allowed by service");
    expect(await askFrom({ address, origin }, remote)).toBe("allowed by cache");
    expect(await askFrom({ address: "::1" }, remote)).toBe("address_not_allowed by service");
    expect(await askFrom({}, remote)).toBe("address_not_allowed by service");
    expect(await askFrom({ address }, remote)).toBe("allowed by cache");
  });

  it("is kept for both where it depends on both", async () => {
    const both = { dependsOnOrigin: true, dependsOnAddress: true };
    expect(await askFrom({ origin, address }, { ...yes, ...both })).toBe("allowed by service");
    for (const place of [{ origin }, { address }, { origin: address, address: origin }]) {
      expect(await askFrom(place, { ...stray, ...both })).toBe("origin_not_allowed by service");
    }
    expect(await askFrom({ origin, address }, stray)).toBe("allowed by cache");
  });

  it("is not joined from another place while it is under way", async () => {
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

  it("is forgotten everywhere when its application changes", async () => {
    await askFrom({ origin }, { ...yes, dependsOnOrigin: true });
    await askFrom({}, stray);
    await hear({ changed: [applicationId], completeUntil: 0 });
    expect(await askFrom({ origin }, stray)).toBe("origin_not_allowed by service");
    await hear({ changed: [applicationId], completeUntil: 0 });
    expect(await askFrom({}, yes)).toBe("allowed by service");
    expect(await askFrom({ origin }, stray)).toBe("allowed by cache");
  });

  it.each([
    ["longer than the service takes it", { origin: "x".repeat(1_001), address: "x".repeat(1_001) }],
    ["broken", { origin: "\ud800", address: "\udc00" }],
    ["missing in another way", { origin: null, address: null }],
  ])("is asked for without a place that is %s", async (_case, place) => {
    const asked = guard.check(key, permission, undefined, place as Place);
    await settle();
    const { origin, address } = lastCheck().request;
    expect([origin, address]).toEqual([undefined, undefined]);
    lastCheck().answer(stray);
    expect(await asked).toMatchObject({ reason: "origin_not_allowed" });
  });

  it.each([[{ origin: 1 }], [{ address: ["::1"] }], ["::1"]])(
    "is not asked for from %p",
    async (place) => {
      const answer = await guard.check(key, permission, undefined, place as Place);
      expect(answer).toMatchObject({ reason: "invalid_request", source: "guard" });
      expect(service.checks).toEqual([]);
    },
  );
});

describe("an answer", () => {
  it("comes from the service at first, and then from the cache", async () => {
    const first = await ask(yes);
    const second = await guard.check(key, permission);
    expect(first).toMatchObject({ allowed: true, transform: "mask", source: "service" });
    expect(second).toEqual({ ...first, source: "cache", staleness: expect.any(Number) });
    expect(service.checks).toHaveLength(1);
  });

  it("says of a refusal why, from the cache too", async () => {
    await ask(no);
    const answer = await guard.check(key, permission);
    const { reason, detail } = no;
    expect(answer).toMatchObject({ allowed: false, reason, detail, source: "cache" });
  });

  it("says how old the knowledge of the service may be", async () => {
    const asked = guard.check(key, permission);
    await settle();
    clock += 700;
    lastCheck().answer(yes);
    expect(await asked).toMatchObject({ source: "service", staleness: 700 });
  });

  it("says how old the knowledge of the cache may be", async () => {
    await ask(yes);
    clock += 700;
    const { source, staleness } = await guard.check(key, permission);
    expect(source).toBe("cache");
    expect(staleness).toBeGreaterThanOrEqual(700);
    expect(staleness).toBeLessThan(705);
  });

  it("is another one for another key, permission or token", async () => {
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

  it("is one and the same from everywhere, where it depends on no place", async () => {
    await ask(yes);
    for (const place of [{}, { origin: "null" }, { address: "::1" }, { origin: "", address: "" }]) {
      expect((await guard.check(key, permission, undefined, place)).source).toBe("cache");
    }
    expect(service.checks).toHaveLength(1);
  });

  it("is about the token as it was when it was asked for", async () => {
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

  it("tells tokens apart that look alike from the outside", async () => {
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

describe("a cached answer", () => {
  it("is given to the last millisecond of the staleness that is allowed", async () => {
    await ask(yes);
    clock += maxStaleness - 1;
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
    clock += 1;
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("is given again when the stream has caught up", async () => {
    await ask(yes);
    await pass(maxStaleness * 2);
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("is not given because heartbeats arrive that were sent long ago", async () => {
    await ask(yes);
    clock += 60_000;
    await hear({ completeUntil: 500 });
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("ends with the subject, counted from when it was asked for, to the millisecond", async () => {
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

  it("says of what has expired that it has, without asking each time", async () => {
    await ask({ ...no, reason: "expired", expiresAt: timestampFromMs(4_000_000) });
    const answer = await guard.check(key, permission);
    expect(answer).toMatchObject({ reason: "expired", source: "cache" });
  });

  it("is not kept where nobody says when the subject was alive", async () => {
    const { checkedAt: _, ...unstamped } = yes;
    await ask({ ...unstamped, expiresAt: timestampFromMs(9_000_000) });
    expect(await ask(no)).toMatchObject({ source: "service" });
  });

  it.each([
    ["its application changes", { changed: [applicationId] }],
    ["everything may have", { reset: true }],
  ])("is forgotten when %s", async (_, message) => {
    await ask(yes);
    await hear(message);
    expect(await ask(no)).toMatchObject({ allowed: false, source: "service" });
  });

  it("stays when another application changes", async () => {
    await ask(yes);
    await hear({ changed: [newId(2)] });
    expect(await guard.check(key, permission)).toMatchObject({ source: "cache" });
  });

  it("of a session is forgotten when its application changes", async () => {
    await ask({ ...yes, sessionId }, sessionKey);
    await hear({ changed: [applicationId] });
    expect(await ask(no, sessionKey)).toMatchObject({ allowed: false, source: "service" });
  });

  it("of a session that waits is forgotten when it is authorized", async () => {
    await ask({ ...no, reason: "not_authorized", sessionId }, sessionKey);
    await hear({ changes: [{ kind: "authorized", applicationId, sessionId }] });
    expect(await ask({ ...yes, sessionId }, sessionKey)).toMatchObject({ allowed: true });
  });

  it("of a key that nobody knows is forgotten when its owner changes", async () => {
    await ask({ allowed: false, reason: "unknown_key", detail: "Who?", checkedAt });
    await hear({ changed: [applicationId] });
    expect(await ask(yes)).toMatchObject({ allowed: true, source: "service" });
  });
});

describe("an answer that is under way", () => {
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
    ["everything may have changed", { reset: true }],
  ])("is not kept where meanwhile %s", async (_, message) => {
    const next = hearMeanwhile(message);
    await settle();
    await settle();
    lastCheck().answer(no);
    expect(await next).toMatchObject({ allowed: false, source: "service" });
  });

  it("is kept where meanwhile something else changes", async () => {
    const next = await hearMeanwhile({ changed: [newId(3), newId(4)] });
    expect(next).toMatchObject({ source: "cache" });
  });

  it("answers all who ask the same meanwhile", async () => {
    const asked = Array.from({ length: 50 }, () => guard.check(key, permission));
    await settle();
    expect(service.checks).toHaveLength(1);
    lastCheck().answer(yes);
    const answers = await Promise.all(asked);
    expect(answers.every(({ allowed }) => allowed)).toBe(true);
  });

  it("says to who joined how old it is by when it was asked first", async () => {
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
  ])("is not shared where %s", async (_, happenBefore, happenMeanwhile) => {
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

  it("fails for all who wait, and for nobody after", async () => {
    const asked = [guard.check(key, permission), guard.check(key, permission)];
    await settle();
    lastCheck().fail(new ConnectError("gone", Code.Unavailable));
    for (const answer of await Promise.all(asked)) {
      expect(answer).toMatchObject({ allowed: false, reason: "unavailable" });
    }
    expect(await ask(yes)).toMatchObject({ allowed: true });
  });

  it("is not kept where the guard is closed meanwhile", async () => {
    const asked = guard.check(key, permission);
    await settle();
    await guard.close();
    lastCheck().answer(yes);
    await asked;
    expect(await guard.check(key, permission)).toMatchObject({ allowed: false });
  });
});

describe("a guard", () => {
  it("does not allow what it cannot find out", async () => {
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

  it("does not allow what it remembers, where it is cut off and that may be wrong by now", async () => {
    await ask(yes);
    clock += maxStaleness;
    const asked = guard.check(key, permission);
    await settle();
    expect(service.checks).toHaveLength(2);
    lastCheck().fail(new ConnectError("gone", Code.Unavailable));
    expect(await asked).toMatchObject({ allowed: false, reason: "unavailable", source: "guard" });
  });

  it("takes a check that the service calls invalid for a mistake of the one who asks", async () => {
    const asked = guard.check(key, "nonsense");
    await settle();
    lastCheck().fail(new ConnectError("permission: must be", Code.InvalidArgument));
    expect(await asked).toMatchObject({ allowed: false, reason: "invalid_request" });
  });

  it("allows nothing once it is closed", async () => {
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
  ])("refuses %s without asking, and does not throw", async (_, ...[key, permission, token]) => {
    const answer = await guard.check(key as string, permission as string, token as Token);
    expect(answer).toMatchObject({ allowed: false, source: "guard", detail: expect.any(String) });
    expect(service.checks).toHaveLength(0);
  });

  it("takes null for no token", async () => {
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
  ])("is not created with %p", (options) => {
    const create = () => createGuard({ url: "http://127.0.0.1:1", key, ...options });
    expect(create).toThrow(RangeError);
  });
});
