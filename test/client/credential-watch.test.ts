import { setImmediate, setTimeout } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type CredentialWatch, startCredentialWatch } from "../../src/client/credential-watch.js";
import { createScriptedService, type ScriptedService, settle } from "./scripted-service.js";

const heartbeat = 500;
const never = Number.NEGATIVE_INFINITY;

let service: ScriptedService;
let watch: CredentialWatch;
let clock: number;
let told: string[];
let errors: ConnectError[];
let pauses: number[];
let silences: number;

beforeEach(() => {
  service = createScriptedService();
  clock = 1_000;
  told = [];
  errors = [];
  pauses = [];
  silences = 0;
  watch = start();
});

afterEach(() => watch.close());

function start(onError = (error: ConnectError): unknown => errors.push(error)) {
  return startCredentialWatch({
    access: service.access,
    heartbeat,
    onChange: (owner) => told.push(owner),
    onReset: () => told.push("reset"),
    onSilence: () => {
      silences++;
    },
    onError,
    now: () => clock,
    sleep: async (milliseconds) => {
      pauses.push(milliseconds);
      await setImmediate();
    },
  });
}

function stream(index = -1) {
  const found = service.streams.at(index);
  if (!found) {
    throw new Error("no stream is open");
  }
  return found;
}

async function say(message: Parameters<ReturnType<typeof stream>["send"]>[0]) {
  stream().send(message);
  await settle();
}

/** Ends the stream, and comes back when the next one is open. */
async function breakOff(error?: ConnectError) {
  const { length } = service.streams;
  if (error) {
    stream().fail(error);
  } else {
    stream().end();
  }
  while (service.streams.length === length) {
    await setImmediate();
  }
}

/** Lets time pass for both, and says a heartbeat. */
async function beat(milliseconds: number, sentAt: number) {
  clock += milliseconds;
  await say({ completeUntil: sentAt });
}

describe("what is complete", () => {
  it("is nothing before the service is heard from", () => {
    expect(watch.completeUntil()).toBe(never);
  });

  it("reaches at first to when the stream was opened, however long the answer took", async () => {
    clock += 900;
    await say({ completeUntil: 77_000 });
    expect(watch.completeUntil()).toBeGreaterThan(990);
    expect(watch.completeUntil()).toBeLessThan(1_000);
  });

  it("moves with the clock of the service and not with the time of arrival", async () => {
    await say({ completeUntil: 77_000 });
    // Both were sent long before they came.
    await beat(4_000, 77_400);
    await beat(0, 77_900);
    expect(watch.completeUntil()).toBeGreaterThan(1_890);
    expect(watch.completeUntil()).toBeLessThan(1_900);
  });

  it("allows for a moment that was rounded down", async () => {
    // The first may have been 77,000.9 and the second 77,100.0.
    await say({ completeUntil: 77_000 });
    await beat(200, 77_100);
    expect(watch.completeUntil()).toBeLessThanOrEqual(1_000 + 99.1);
  });

  it("allows for the clock of the service being fast", async () => {
    await say({ completeUntil: 0 });
    await beat(40_000, 40_000);
    expect(watch.completeUntil()).toBeLessThanOrEqual(1_000 + 40_000 * 0.999);
    expect(watch.completeUntil()).toBeGreaterThan(1_000 + 40_000 * 0.998);
  });

  it("does not move with a message that more follow", async () => {
    await say({ completeUntil: 0 });
    const before = watch.completeUntil();
    clock += 100;
    await say({ changed: ["a"] });
    expect(watch.completeUntil()).toBe(before);
    expect(told).toEqual(["reset", "a"]);
  });

  it("is nothing where the service is ahead of us, because our clock stood still", async () => {
    await say({ completeUntil: 0 });
    await say({ completeUntil: 60_000 });
    expect(watch.completeUntil()).toBe(never);
    expect(service.streams).toHaveLength(2);
  });

  it("stays as it is while the stream is down", async () => {
    await say({ completeUntil: 0 });
    const before = watch.completeUntil();
    clock += 3_000;
    await breakOff(new ConnectError("gone", Code.Unavailable));
    expect(watch.completeUntil()).toBe(before);
  });

  it("is nothing once the watch is closed, whatever is still said", async () => {
    await say({ completeUntil: 0 });
    const closed = watch.close();
    stream().send({ completeUntil: 1 });
    await closed;
    expect(watch.completeUntil()).toBe(never);
  });
});

describe("what is heard", () => {
  it("begins with a reset where nothing is known yet", async () => {
    await say({});
    expect(told).toEqual(["reset"]);
  });

  it("names the session where it is one that changed, and else the application", async () => {
    const changes = [
      { kind: "deleted", applicationId: "app" },
      { kind: "authorized", applicationId: "app", sessionId: "session" },
    ];
    await say({ changes });
    expect(told).toEqual(["reset", "app", "session"]);
  });

  it("tells a reset before the changes of the same message", async () => {
    await say({});
    await say({ reset: true, changed: ["a"] });
    expect(told).toEqual(["reset", "reset", "a"]);
  });

  it("tells whether an owner changed since", async () => {
    await say({ changed: ["a"] });
    const epoch = watch.epoch();
    await say({ changed: ["b"] });
    expect(watch.changedSince(epoch, ["a", undefined])).toBe(false);
    expect(watch.changedSince(epoch, ["a", "b"])).toBe(true);
    expect(watch.changedSince(watch.epoch(), ["b"])).toBe(false);
  });

  it("counts a reset as a change of all", async () => {
    await say({});
    const epoch = watch.epoch();
    await say({ reset: true, changed: ["a"] });
    expect(watch.changedSince(epoch, ["b"])).toBe(true);
  });

  it("counts as changed what it has heard too much since to know", async () => {
    await say({});
    const epoch = watch.epoch();
    const many = Array.from({ length: 2_500 }, (_, index) => `other ${index}`);
    await say({ changed: ["a", ...many] });
    expect(watch.changedSince(epoch, ["a"])).toBe(true);
    expect(watch.changedSince(epoch, ["b"])).toBe(true);
    expect(watch.changedSince(watch.epoch() - 900, ["b"])).toBe(false);
  });
});

describe("a stream that ends", () => {
  it("is followed by one that goes on from its last message, without a reset", async () => {
    await say({ token: "first" });
    await say({ token: "second" });
    await breakOff();
    await say({ changed: ["a"] });
    expect(stream().request.resumeToken).toBe("second");
    expect(told).toEqual(["reset", "a"]);
  });

  it("is followed by one from now and a reset where the token is refused", async () => {
    await say({});
    await breakOff(new ConnectError("not ours", Code.InvalidArgument));
    expect(stream().request.resumeToken).toBeUndefined();
    await say({ changed: ["a"] });
    expect(told).toEqual(["reset", "reset", "a"]);
  });

  it("keeps its token through any other failure", async () => {
    await say({ token: "first" });
    await breakOff(new ConnectError("gone", Code.Unavailable));
    await breakOff(new ConnectError("who are you", Code.Unauthenticated));
    expect(stream().request.resumeToken).toBe("first");
  });

  it("is told of where it broke, and not where it ended", async () => {
    await breakOff(new ConnectError("gone", Code.Unavailable));
    await breakOff();
    expect(errors.map(({ code }) => code)).toEqual([Code.Unavailable]);
  });

  it("does not end the watch where the one who is told throws", async () => {
    await watch.close();
    watch = start(() => {
      throw new Error("a mistake of the listener");
    });
    await breakOff(new ConnectError("gone", Code.Unavailable));
    await say({ completeUntil: 0 });
    expect(watch.completeUntil()).toBeGreaterThan(0);
  });

  it("is opened anew later and later, until it lasts for more than a message", async () => {
    for (let attempt = 0; attempt < 8; attempt++) {
      await say({});
      await breakOff(new ConnectError("gone", Code.Unavailable));
    }
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3_000);
    await say({});
    await say({});
    await breakOff();
    expect(pauses.at(-1)).toBeLessThanOrEqual(75);
  });
});

describe("a stream that is up", () => {
  it("is opened anew when it gets old, and the old one is ended", async () => {
    await say({ completeUntil: 0 });
    await beat(60_001, 60_001);
    expect(service.streams).toHaveLength(2);
    expect(stream(0).signal?.aborted).toBe(true);
    expect(errors).toEqual([]);
  });

  it("is opened anew where it lags behind, but not again and again", async () => {
    clock += 3_000;
    await say({ completeUntil: 0 });
    await beat(500, 500);
    expect(service.streams).toHaveLength(1);
    await beat(2_000, 2_500);
    expect(service.streams).toHaveLength(2);
  });

  it("is given up when nothing is heard, and told of", async () => {
    await say({ completeUntil: 0 });
    while (service.streams.length === 1) {
      await setTimeout(20);
    }
    expect(errors.map(({ code }) => code)).toEqual([Code.DeadlineExceeded]);
    expect(silences).toBe(1);
  });

  it("can be opened anew by the one who uses it, and nothing counts until then", async () => {
    await say({ completeUntil: 0, token: "first" });
    const epoch = watch.epoch();
    // It has come, but was not looked at yet.
    stream(0).send({ completeUntil: 1, token: "late" });
    watch.reopen();
    await settle();
    await settle();
    expect(watch.completeUntil()).toBe(never);
    expect(watch.changedSince(epoch, ["anyone"])).toBe(true);
    expect(stream().request.resumeToken).toBe("first");
    expect(errors).toEqual([]);
    await say({ completeUntil: 5 });
    expect(watch.completeUntil()).toBeGreaterThan(0);
    expect(told).toEqual(["reset"]);
  });

  it("asks for the heartbeat that is wanted", () => {
    expect(stream().request.heartbeatMs).toBe(heartbeat);
  });
});

describe("being ready", () => {
  it("comes with the first message that is complete", async () => {
    let isReady = false;
    void watch.ready().then(() => {
      isReady = true;
    });
    await say({});
    expect(isReady).toBe(false);
    await say({ completeUntil: 0 });
    expect(isReady).toBe(true);
  });

  it("comes with the end too", async () => {
    await watch.close();
    await watch.ready();
    await watch.close();
  });
});
