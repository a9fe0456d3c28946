import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Document } from "mongodb";
import { newId } from "../../../src/lib/uuid.js";
import { callDriver } from "../../../src/store/mongo/driver-call.js";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import {
  AlreadyApplied,
  CallerChanged,
  ChangeCanceled,
  StoreUnavailable,
} from "../../../src/store/port/errors.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { anIdempotencyId, aResponse } from "../../contract/store/audited-changes.js";
import { anEvent, listEvents } from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  createWithSession,
  must,
  times,
} from "../../contract/store/fixtures.js";
import { useFollowers } from "../../support/api/followers.js";
import { startProxy } from "../../support/http/tcp-proxy.js";
import {
  type FailingMongo,
  isAvailable,
  startFailingMongo,
} from "../../support/mongo/failing-mongo.js";
import { longTimeouts, withOptions } from "../../support/mongo/uri.js";
import { audit } from "../../support/store/audit.js";
import {
  type ChangeContext,
  type OperableStore,
  withOperations,
} from "../../support/store/operations.js";
import { until } from "../../support/until.js";

let failing: FailingMongo;
let mongod: FailingMongo["mongod"];
let store: FailingMongo["store"];
let owner: FailingMongo["application"];
let fail: FailingMongo["fail"];

beforeAll(async () => {
  failing = await startFailingMongo();
  ({ mongod, store, application: owner, fail } = failing);
});

afterAll(() => failing?.stop());

/** Makes every kind of call concurrently, and returns their outcomes. */
async function callAll(by = store): Promise<Record<string, unknown>> {
  const { id, tenantId } = owner;
  const session = aSession(owner);
  const calls = {
    create: by.applications.create(anApplication(), audit.created),
    isEmpty: by.applications.isEmpty(),
    find: by.applications.find(id),
    findExpired: by.applications.findExpired(id),
    list: by.applications.list({ tenantId, size: 1, from: { page: 2 } }),
    update: by.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated),
    delete: by.applications.delete(tenantId, newId(Date.now()), audit.deleted),
    recordUses: by.applications.recordUses([{ applicationId: id, at: Date.now() }]),
    createSession: by.sessions.create(session),
    findSession: by.sessions.find(session.id),
    findExpiredSession: by.sessions.findExpired(session.id),
    authorize: by.sessions.authorize(aGrant(session), audit.authorized),
    listSessions: by.sessions.list({ tenantId, size: 1 }),
    deleteSession: by.sessions.delete(tenantId, session.id, audit.sessionDeleted),
    now: by.now(),
    ping: by.ping(),
  };
  const outcomes = Object.entries(calls).map(async ([name, call]) => [
    name,
    await Promise.resolve<unknown>(call).then(
      () => "done",
      (error) => (error instanceof StoreUnavailable && error.cause ? "unavailable" : error),
    ),
  ]);
  return Object.fromEntries(await Promise.all(outcomes));
}

const allOutcomes = (outcome: "done" | "unavailable") =>
  Object.fromEntries(
    [
      "create",
      "isEmpty",
      "find",
      "findExpired",
      "list",
      "update",
      "delete",
      "recordUses",
      "createSession",
      "findSession",
      "findExpiredSession",
      "authorize",
      "listSessions",
      "deleteSession",
      "now",
      "ping",
    ].map((name) => [name, outcome]),
  );

/** A change context that requires the caller to exist. */
function contextBy(caller: ApplicationRecord, event: NewEvent): ChangeContext<unknown> {
  return {
    caller: {
      applicationId: caller.id,
      assertAuthority(found) {
        if (!found) {
          throw new CallerChanged("The caller was deleted.");
        }
      },
    },
    eventFor: () => event,
  };
}

it("completes a change when every read of its caller is slow", async () => {
  const caller = await store.applications.create(anApplication(), audit.created);
  const lag = { failCommands: ["find"], blockConnection: true, blockTimeMS: 50 };
  await fail("alwaysOn", lag);
  const creating = store.applications.create(anApplication(), contextBy(caller, anEvent()));
  const { id } = await creating.finally(() => fail("off"));
  expect(await store.applications.find(id)).toBeDefined();
});

describe("a change whose caller is deleted while it waits", () => {
  let longTimeoutStore: OperableStore;

  beforeAll(async () => {
    longTimeoutStore = await failing.open(longTimeouts);
  });

  it.each(["an application", "a session"])("does not create %s", async (kind) => {
    const caller = await store.applications.create(anApplication(), audit.created);
    const event = anEvent();
    const context = contextBy(caller, event);
    const idempotent = { idempotencyId: anIdempotencyId(), responseFor: () => aResponse() };
    const [application, session] = [anApplication({ externalId: "svc-1" }), aSession(owner)];
    // It claims the external id, or reserves the id of the session.
    const untilReceived = await failing.delayNext("findAndModify");
    const change = Promise.allSettled([
      kind === "an application"
        ? longTimeoutStore.applications.create(application, context)
        : longTimeoutStore.sessions.create(session, { ...context, ...idempotent }),
    ]);
    await untilReceived();
    await store.applications.delete(caller.tenantId, caller.id, audit.deleted);
    const [{ status, reason }] = (await change) as [PromiseRejectedResult];
    expect([status, reason]).toEqual(["rejected", expect.any(CallerChanged)]);
    expect(await store.applications.find(application.id)).toBeUndefined();
    expect(await store.sessions.find(session.id)).toBeUndefined();
    expect(await listEvents(store, { tenantId: event.tenantId })).toEqual([]);
  });
});

describe("the creation of a session", () => {
  it("is one write, and is refused if the rights of its caller have changed", async () => {
    const [caller, deleted] = [
      await store.applications.create(anApplication(), audit.created),
      await store.applications.create(anApplication(), audit.created),
    ];
    await store.applications.delete(deleted.tenantId, deleted.id, audit.deleted);
    await fail("alwaysOn", { failCommands: ["update", "findAndModify"], errorCode: 112 });
    try {
      for (const opener of [caller, owner]) {
        const { caller: by } = contextBy(caller, anEvent());
        expect(await store.sessions.create(aSession(opener), { caller: by })).toBeDefined();
      }
      const refused = aSession(owner);
      const { caller: by } = contextBy(deleted, anEvent());
      const creating = store.sessions.create(refused, { caller: by });
      await expect(creating).rejects.toBeInstanceOf(CallerChanged);
      expect(await store.sessions.find(refused.id)).toBeUndefined();
    } finally {
      await fail("off");
    }
  });

  it("checks the rights of its own application without another read", async () => {
    const session = aSession(owner);
    const assertAuthority = () => {
      throw new CallerChanged("The rights have changed.");
    };
    const creating = store.sessions.create(session, {
      caller: { applicationId: owner.id, assertAuthority },
    });
    await expect(creating).rejects.toBeInstanceOf(CallerChanged);
    expect(await store.sessions.find(session.id)).toBeUndefined();
  });

  it("is not tried after its caller has canceled", async () => {
    const session = aSession(owner);
    const creating = store.sessions.create(session, { isCanceled: () => true });
    await expect(creating).rejects.toBeInstanceOf(ChangeCanceled);
    expect(await store.sessions.find(session.id)).toBeUndefined();
  });
});

describe("a failing MongoDB", () => {
  it.each([
    ["has no primary", { errorCode: 10_107 }],
    ["changes its primary", { errorCode: 189 }],
    ["shuts down", { errorCode: 11_600 }],
    ["takes too long", { errorCode: 50 }],
    ["cannot confirm its reads", { errorCode: 187 }],
    ["has aborted a slow transaction", { errorCode: 290 }],
    ["closes the connection", { closeConnection: true }],
  ])("is unavailable when it %s, and recovers", async (_, failure) => {
    const failCommands = ["find", "findAndModify", "update", "aggregate", "hello"];
    await fail("alwaysOn", { failCommands, ...failure });
    const outcomes = await callAll().finally(() => fail("off"));
    expect(outcomes).toEqual(allOutcomes("unavailable"));
    await until(async () => isDeepStrictEqual(await callAll(), allOutcomes("done")));
  });

  it("is unavailable for writes without a majority", async () => {
    const writeConcernError = { code: 64, errmsg: "waiting for replication timed out" };
    const { application } = await createWithSession(store);
    const failCommands = ["findAndModify", "update", "delete"];
    await fail("alwaysOn", { failCommands, writeConcernError });
    const deleting = store.applications.delete(application.tenantId, application.id, audit.deleted);
    await expect(deleting).rejects.toThrow(StoreUnavailable);
    const outcomes = await callAll().finally(() => fail("off"));
    expect(outcomes).toMatchObject({
      create: "unavailable",
      recordUses: "unavailable",
      find: "done",
    });
  });

  it("creates a session once if it failed after the write and before its response", async () => {
    const errorLabels = ["RetryableWriteError"];
    const writeConcernError = { code: 91, errmsg: "The server is going down.", errorLabels };
    await fail({ times: 1 }, { failCommands: ["findAndModify"], writeConcernError });
    const session = aSession(owner);
    expect(await store.sessions.create(session)).toBeDefined();
    expect(await store.sessions.find(session.id)).toBeDefined();
  });

  it("is unavailable while it is frozen, and recovers when resumed", async () => {
    process.kill(mongod.pid, "SIGSTOP");
    const outcomes = await callAll().finally(() => process.kill(mongod.pid, "SIGCONT"));
    expect(outcomes).toEqual(allOutcomes("unavailable"));
    await until(async () => isDeepStrictEqual(await callAll(), allOutcomes("done")));
  });
});

describe("a driver call", () => {
  it("reports a broken socket as unavailable", async () => {
    const cause = Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" });
    const outcome = await callDriver(() => Promise.reject(cause)).catch((error) => error);
    expect(outcome).toBeInstanceOf(StoreUnavailable);
    expect(outcome.cause).toBe(cause);
  });

  it("passes on programming errors", async () => {
    const mistake = new TypeError("undefined is not a function");
    await expect(callDriver(() => Promise.reject(mistake))).rejects.toBe(mistake);
  });
});

describe("an audited change on a failing MongoDB", () => {
  /** An application whose name grows by one character with each change. Each change adds an event. */
  async function prepare() {
    const kind = "application.updated";
    const { id, tenantId } = await store.applications.create(
      anApplication({ name: "" }),
      audit.created,
    );
    const createContext = (
      idempotencyId?: string,
      isCanceled = () => false,
    ): ChangeContext<unknown> => ({
      idempotencyId,
      isCanceled,
      eventFor: () => anEvent({ tenantId, kind }),
      responseFor: () => aResponse(),
    });
    const changeThrough = ({ applications }: OperableStore, context: ChangeContext<unknown>) =>
      applications.update(
        tenantId,
        id,
        ({ name }) => ({ name: `${name}+`, modifiedBy: id }),
        context,
      );
    return {
      change: (idempotencyId?: string, isCanceled?: () => boolean) =>
        changeThrough(store, createContext(idempotencyId, isCanceled)),
      /** Makes the change through another store, and calls `midway` after the record is written, before its events. */
      changeBy: (other: OperableStore, midway: () => void) =>
        changeThrough(other, {
          eventFor(outcome) {
            midway();
            return createContext().eventFor(outcome);
          },
        }),
      /** The number of changes according to the record, and according to the events. */
      async counts() {
        const { name } = must(await store.applications.find(id));
        return [name.length, (await listEvents(store, { tenantId, kinds: [kind] })).length];
      },
    };
  }

  it("is committed with a journaled majority, whatever the URI specifies", async () => {
    const uri = withOptions(mongod.uri, { w: "1", journal: "false" });
    const weak = withOperations(await openMongoStore({ uri, database: "latchkey" }));
    const { changeBy } = await prepare();
    const admin = failing.admin.db("admin");
    // The profiler omits commits, so they are read from the server's log of slow commands.
    const setSlowThreshold = (slowms: number) => admin.command({ profile: 0, slowms });
    let writes: Document[] = [];
    await setSlowThreshold(-1);
    try {
      // The server keeps a thousand log lines, so on a busy machine the write may be missing.
      await until(async () => {
        await changeBy(weak, () => {});
        const { log } = await admin.command({ getLog: "global" });
        writes = (log as string[])
          .filter((line) => line.includes('"command":{"update":"applications"'))
          // A recorded use is not journaled.
          .filter((line) => !line.includes("last_used_at"))
          .map((line) => JSON.parse(line).attr.command);
        return writes.length > 0;
      });
    } finally {
      await setSlowThreshold(100);
      await weak.close();
    }
    for (const { writeConcern } of writes) {
      expect(writeConcern).toMatchObject({ w: "majority", j: true });
    }
  });

  const stepped = { code: 189, errmsg: "The primary has stepped down." };

  it.each([
    ["the connection was lost", { closeConnection: true }],
    ["the primary changed", { errorCode: 189, errorLabels: ["RetryableWriteError"] }],
  ])("takes effect once when %s", async (_, failure) => {
    const { change, counts } = await prepare();
    await fail({ times: 1 }, { failCommands: ["update"], ...failure });
    const changed = await change().finally(() => fail("off"));
    expect(changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
  });

  it("is not written too late, and not retried after its caller has canceled", async () => {
    const { change, counts } = await prepare();
    const untilReceived = await failing.delayNext("update");
    let isCanceled = false;
    const outcome = change(undefined, () => isCanceled);
    outcome.catch(() => {});
    await untilReceived();
    isCanceled = true;
    await expect(outcome).rejects.toBeInstanceOf(ChangeCanceled);
    expect(await counts()).toEqual([0, 0]);
  });

  it("is retried if it was too late", async () => {
    const { change, counts } = await prepare();
    const untilReceived = await failing.delayNext("update");
    const changed = change();
    await untilReceived();
    expect(await changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
  });

  it.each([
    ["has not taken effect", { closeConnection: true }, 0],
    ["has taken effect", { writeConcernError: stepped }, 1],
  ])("fails when the write gets no response and the change %s", async (_, failure, changes) => {
    const { change, counts } = await prepare();
    const id = anIdempotencyId();
    await fail("alwaysOn", { failCommands: ["update"], ...failure });
    const outcome = await change(id)
      .catch((error) => error)
      .finally(() => fail("off"));
    expect(outcome).toBeInstanceOf(StoreUnavailable);
    await until(() => isAvailable(store));
    // It may reach a majority after the failure was reported.
    await until(async () => isDeepStrictEqual(await counts(), [changes, changes]));
    if (changes) {
      await expect(change(id)).rejects.toBeInstanceOf(AlreadyApplied);
    }
    expect((await store.responses.find(id)) !== undefined).toBe(changes === 1);
  });

  it("succeeds soon after another instance was disconnected during a change of the same record", async () => {
    const { change, changeBy, counts } = await prepare();
    const proxy = await startProxy(Number(new URL(failing.mongod.uri).port));
    const options = "directConnection=true&serverSelectionTimeoutMS=1500";
    const uri = `${proxy.url.replace("http", "mongodb")}/?${options}`;
    const other = withOperations(await openMongoStore({ uri, database: "latchkey" }));
    await expect(changeBy(other, proxy.cut)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await change()).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
    await other.close();
    await proxy.close();
  });

  it("succeeds when its write first finds no connection", async () => {
    const { changeBy, counts } = await prepare();
    const uri = `${failing.mongod.uri}&maxPoolSize=1&waitQueueTimeoutMS=600`;
    const narrow = withOperations(await openMongoStore({ uri, database: "latchkey" }));
    const namespace = "latchkey.applications";
    const lag = { failCommands: ["find"], namespace, blockConnection: true, blockTimeMS: 1_500 };
    await fail({ times: 1 }, lag);
    let read: Promise<void> | undefined;
    // Runs before the write.
    const changed = changeBy(narrow, () => setImmediate(() => (read = narrow.ping())))
      .finally(() => read)
      .finally(() => narrow.close());
    expect(await changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
  });

  it("takes effect if acknowledged, and not if refused, during a change of the primary", async () => {
    const { change, counts } = await prepare();
    const stepDown = failing.admin
      .db("admin")
      .command({ replSetStepDown: 1, secondaryCatchUpPeriodSecs: 0, force: true });
    const outcomes = await Promise.all([
      ...times(10, () =>
        change().then(
          () => "changed",
          (error) => error,
        ),
      ),
      stepDown.then(
        () => "stepped",
        () => "stepped",
      ),
    ]);
    for (const outcome of outcomes) {
      expect(typeof outcome === "string" || outcome instanceof StoreUnavailable).toBe(true);
    }
    await until(() => isAvailable(store));
    const [byRecord = 0, byEvents] = await counts();
    expect(byEvents).toBe(byRecord);
    const acknowledged = outcomes.filter((outcome) => outcome === "changed").length;
    expect(byRecord).toBeGreaterThanOrEqual(acknowledged);
  });
});

describe("a killed MongoDB", () => {
  const follow = useFollowers();

  it("is unavailable and ends subscriptions", async () => {
    const killed = await startFailingMongo();
    try {
      const other = await killed.open({ serverSelectionTimeoutMS: "1000" });
      const { tenantId } = killed.application;
      const follower = follow(other, tenantId, { heartbeat: 1 });
      await follower.next();
      process.kill(killed.mongod.pid, "SIGKILL");
      await expect(follower.until(() => false)).rejects.toThrow(StoreUnavailable);
      expect(await callAll(other)).toEqual(allOutcomes("unavailable"));
      await expect(follow(other, tenantId).next()).rejects.toThrow(StoreUnavailable);
    } finally {
      await killed.stop();
    }
  });
});

describe("a list request whose caller disconnects", () => {
  /** Configures a fail point of the server. */
  const setFailPoint = (configureFailPoint: string, mode: string, data: Document = {}) =>
    failing.admin.db("admin").command({ configureFailPoint, mode, data });

  /** Counts the reads of the store that the server currently runs. */
  async function countReads(): Promise<number> {
    const ofStore = { appName: "latchkey", "command.find": { $exists: true } };
    const { inprog } = await failing.admin.db("admin").command({ currentOp: 1, ...ofStore });
    return inprog.length;
  }

  it.each(["events", "applications", "sessions"] as const)(
    "stops the query of %s on the server",
    async (name) => {
      const query = { tenantId: owner.tenantId, size: 1, from: { page: 1 } };
      const caller = new AbortController();
      const reason = new Error("the caller disconnected");
      const data = { nss: `latchkey.${name}`, shouldCheckForInterrupt: true };
      await setFailPoint("maxTimeNeverTimeOut", "alwaysOn");
      await setFailPoint("waitInFindBeforeMakingBatch", "alwaysOn", data);
      try {
        const aborted = store[name].list(query, caller.signal);
        aborted.catch(() => {});
        await until(async () => (await countReads()) > 0);
        caller.abort(reason);
        await expect(aborted).rejects.toBe(reason);
        await until(async () => (await countReads()) === 0);
      } finally {
        await setFailPoint("waitInFindBeforeMakingBatch", "off");
        await setFailPoint("maxTimeNeverTimeOut", "off");
      }
      expect(await isAvailable(store)).toBe(true);
    },
  );
});
