import { setImmediate, setTimeout } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type CredentialWatch, startCredentialWatch } from "../../src/client/credential-watch.js";
import { createFakeService, type FakeService, settle } from "./fake-service.js";

const heartbeat = 500;
const never = Number.NEGATIVE_INFINITY;

let service: FakeService;
let watch: CredentialWatch;
let clock: number;
let notifications: string[];
let errors: ConnectError[];
let pauses: number[];
let silences: number;

beforeEach(() => {
  service = createFakeService();
  clock = 1_000;
  notifications = [];
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
    onChange: (owner) => notifications.push(owner),
    onReset: () => notifications.push("reset"),
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

async function send(message: Parameters<ReturnType<typeof stream>["send"]>[0]) {
  stream().send(message);
  await settle();
}

/** Ends the stream, and resolves when the next one is open. */
async function disconnect(error?: ConnectError) {
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

/** Advances both clocks and sends a heartbeat. */
async function sendHeartbeat(milliseconds: number, sentAt: number) {
  clock += milliseconds;
  await send({ completeUntil: sentAt });
}

describe("completeUntil", () => {
  it("is unset before the first message", () => {
    expect(watch.completeUntil()).toBe(never);
  });

  it("starts at the time the stream was opened, however late the first message", async () => {
    clock += 900;
    await send({ completeUntil: 77_000 });
    expect(watch.completeUntil()).toBeGreaterThan(990);
    expect(watch.completeUntil()).toBeLessThan(1_000);
  });

  it("advances with the clock of the service, not with the time of arrival", async () => {
    await send({ completeUntil: 77_000 });
    // Both arrive long after they were sent.
    await sendHeartbeat(4_000, 77_400);
    await sendHeartbeat(0, 77_900);
    expect(watch.completeUntil()).toBeGreaterThan(1_890);
    expect(watch.completeUntil()).toBeLessThan(1_900);
  });

  it("accounts for times that were rounded down", async () => {
    // The first may have been 77,000.9 and the second 77,100.0.
    await send({ completeUntil: 77_000 });
    await sendHeartbeat(200, 77_100);
    expect(watch.completeUntil()).toBeLessThanOrEqual(1_000 + 99.1);
  });

  it("accounts for a fast clock of the service", async () => {
    await send({ completeUntil: 0 });
    await sendHeartbeat(40_000, 40_000);
    expect(watch.completeUntil()).toBeLessThanOrEqual(1_000 + 40_000 * 0.999);
    expect(watch.completeUntil()).toBeGreaterThan(1_000 + 40_000 * 0.998);
  });

  it("does not advance with a partial message", async () => {
    await send({ completeUntil: 0 });
    const before = watch.completeUntil();
    clock += 100;
    await send({ changed: ["a"] });
    expect(watch.completeUntil()).toBe(before);
    expect(notifications).toEqual(["reset", "a"]);
  });

  it("is unset if the service is ahead because the local clock stopped", async () => {
    await send({ completeUntil: 0 });
    await send({ completeUntil: 60_000 });
    expect(watch.completeUntil()).toBe(never);
    expect(service.streams).toHaveLength(2);
  });

  it("does not change while the stream is down", async () => {
    await send({ completeUntil: 0 });
    const before = watch.completeUntil();
    clock += 3_000;
    await disconnect(new ConnectError("unreachable", Code.Unavailable));
    expect(watch.completeUntil()).toBe(before);
  });

  it("is unset after close, whatever arrives later", async () => {
    await send({ completeUntil: 0 });
    const closed = watch.close();
    stream().send({ completeUntil: 1 });
    await closed;
    expect(watch.completeUntil()).toBe(never);
  });
});

describe("changes", () => {
  it("start with a reset", async () => {
    await send({});
    expect(notifications).toEqual(["reset"]);
  });

  it("report the session if it changed, otherwise the application", async () => {
    const changes = [
      { kind: "deleted", applicationId: "app" },
      { kind: "authorized", applicationId: "app", sessionId: "session" },
    ];
    await send({ changes });
    expect(notifications).toEqual(["reset", "app", "session"]);
  });

  it.each([{ kind: "merged", applicationId: "a" }, { kind: "updated" }, {}])(
    "reset, if only a later version of the service can mean %j",
    async (change) => {
      await send({});
      const epoch = watch.epoch();
      const known = { kind: "updated", applicationId: "b" };
      await send({ changes: [change, known] });
      expect(notifications).toEqual(["reset", "reset", "b"]);
      expect(watch.changedSince(epoch, ["c"])).toBe(true);
    },
  );

  it("report a reset before the changes of the same message", async () => {
    await send({});
    await send({ reset: true, changed: ["a"] });
    expect(notifications).toEqual(["reset", "reset", "a"]);
  });

  it("are found by principal since an epoch", async () => {
    await send({ changed: ["a"] });
    const epoch = watch.epoch();
    await send({ changed: ["b"] });
    expect(watch.changedSince(epoch, ["a", undefined])).toBe(false);
    expect(watch.changedSince(epoch, ["a", "b"])).toBe(true);
    expect(watch.changedSince(watch.epoch(), ["b"])).toBe(false);
  });

  it("count a reset as a change of every principal", async () => {
    await send({});
    const epoch = watch.epoch();
    await send({ reset: true, changed: ["a"] });
    expect(watch.changedSince(epoch, ["b"])).toBe(true);
  });

  it("count every principal as changed after too many changes", async () => {
    await send({});
    const epoch = watch.epoch();
    const many = Array.from({ length: 2_500 }, (_, index) => `other ${index}`);
    await send({ changed: ["a", ...many] });
    expect(watch.changedSince(epoch, ["a"])).toBe(true);
    expect(watch.changedSince(epoch, ["b"])).toBe(true);
    expect(watch.changedSince(watch.epoch() - 900, ["b"])).toBe(false);
  });
});

describe("a stream that ends", () => {
  it("is resumed after its last message, without a reset", async () => {
    await send({ token: "first" });
    await send({ token: "second" });
    await disconnect();
    await send({ changed: ["a"] });
    expect(stream().request.resumeToken).toBe("second");
    expect(notifications).toEqual(["reset", "a"]);
  });

  it("restarts with a reset if the resume token is refused", async () => {
    await send({});
    await disconnect(new ConnectError("unknown token", Code.InvalidArgument));
    expect(stream().request.resumeToken).toBeUndefined();
    await send({ changed: ["a"] });
    expect(notifications).toEqual(["reset", "reset", "a"]);
  });

  it("keeps its resume token after any other error", async () => {
    await send({ token: "first" });
    await disconnect(new ConnectError("unreachable", Code.Unavailable));
    await disconnect(new ConnectError("invalid key", Code.Unauthenticated));
    expect(stream().request.resumeToken).toBe("first");
  });

  it("is reported if it failed, not if it ended", async () => {
    await disconnect(new ConnectError("unreachable", Code.Unavailable));
    await disconnect();
    expect(errors.map(({ code }) => code)).toEqual([Code.Unavailable]);
  });

  it("does not stop the watch if the listener throws", async () => {
    await watch.close();
    watch = start(() => {
      throw new Error("a bug in the listener");
    });
    await disconnect(new ConnectError("unreachable", Code.Unavailable));
    await send({ completeUntil: 0 });
    expect(watch.completeUntil()).toBeGreaterThan(0);
  });

  it("is reopened with backoff until it delivers a second message", async () => {
    for (let attempt = 0; attempt < 8; attempt++) {
      await send({});
      await disconnect(new ConnectError("unreachable", Code.Unavailable));
    }
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(1_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3_000);
    await send({});
    await send({});
    await disconnect();
    expect(pauses.at(-1)).toBeLessThanOrEqual(75);
  });
});

describe("an open stream", () => {
  it("is reopened when it is old, and the old one is aborted", async () => {
    await send({ completeUntil: 0 });
    await sendHeartbeat(60_001, 60_001);
    expect(service.streams).toHaveLength(2);
    expect(stream(0).signal?.aborted).toBe(true);
    expect(errors).toEqual([]);
  });

  it("is reopened when it lags, but not repeatedly", async () => {
    clock += 3_000;
    await send({ completeUntil: 0 });
    await sendHeartbeat(500, 500);
    expect(service.streams).toHaveLength(1);
    await sendHeartbeat(2_000, 2_500);
    expect(service.streams).toHaveLength(2);
  });

  it("is aborted and reported after a silence", async () => {
    await send({ completeUntil: 0 });
    while (service.streams.length === 1) {
      await setTimeout(20);
    }
    expect(errors.map(({ code }) => code)).toEqual([Code.DeadlineExceeded]);
    expect(silences).toBe(1);
  });

  it("can be reopened by the caller, and nothing is complete until then", async () => {
    await send({ completeUntil: 0, token: "first" });
    const epoch = watch.epoch();
    // It has arrived, but was not read yet.
    stream(0).send({ completeUntil: 1, token: "late" });
    watch.reopen();
    await settle();
    await settle();
    expect(watch.completeUntil()).toBe(never);
    expect(watch.changedSince(epoch, ["any principal"])).toBe(true);
    expect(stream().request.resumeToken).toBe("first");
    expect(errors).toEqual([]);
    await send({ completeUntil: 5 });
    expect(watch.completeUntil()).toBeGreaterThan(0);
    expect(notifications).toEqual(["reset"]);
  });

  it("requests the configured heartbeat", () => {
    expect(stream().request.heartbeat).toEqual(durationFromMs(heartbeat));
  });
});

describe("ready", () => {
  it("resolves with the first complete message", async () => {
    let isReady = false;
    void watch.ready().then(() => {
      isReady = true;
    });
    await send({});
    expect(isReady).toBe(false);
    await send({ completeUntil: 0 });
    expect(isReady).toBe(true);
  });

  it.each([Code.Unauthenticated, Code.PermissionDenied])(
    "rejects if the service refuses the key with code %p, until a stream opens",
    async (code) => {
      const refusal = new ConnectError("refused", code);
      const waiting = watch.ready().catch((error: unknown) => error);
      await disconnect(refusal);
      expect(await waiting).toBe(refusal);
      await expect(watch.ready()).rejects.toBe(refusal);
      await send({ completeUntil: 0 });
      await watch.ready();
      await disconnect(refusal);
      await watch.ready();
    },
  );

  it("waits while the service is unavailable", async () => {
    let outcome = "waiting";
    void watch.ready().then(
      () => {
        outcome = "ready";
      },
      () => {
        outcome = "rejected";
      },
    );
    await disconnect(new ConnectError("unavailable", Code.Unavailable));
    await disconnect();
    expect(outcome).toBe("waiting");
    await send({ completeUntil: 0 });
    expect(outcome).toBe("ready");
  });

  it("resolves when closed", async () => {
    await watch.close();
    await watch.ready();
    await watch.close();
  });
});
