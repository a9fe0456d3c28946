import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Document } from "mongodb";
import { newId } from "../../../src/lib/uuid.js";
import { callDriver } from "../../../src/store/mongo/driver-call.js";
import { openMongoStore } from "../../../src/store/mongo/store.js";
import type { ChangeContext } from "../../../src/store/port/audit.js";
import { AlreadyApplied, CallerChanged, StoreUnavailable } from "../../../src/store/port/errors.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { anEvent, listEvents } from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  createBoth,
  must,
  times,
} from "../../contract/store/fixtures.js";
import { anAnswer, anAnswerId } from "../../contract/store/trailed-changes.js";
import { useFollowers } from "../../support/api/followers.js";
import { startProxy } from "../../support/http/tcp-proxy.js";
import { type FailingMongo, startFailingMongo } from "../../support/mongo/failing-mongo.js";
import { withOptions } from "../../support/mongo/uri.js";
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

const answers = () =>
  store.ping().then(
    () => true,
    () => false,
  );

/** Makes every kind of call at once, and answers how each ended. */
async function callAll(by = store): Promise<Record<string, unknown>> {
  const { id, tenantId } = owner;
  const session = aSession(owner);
  const calls = {
    create: by.applications.create(anApplication()),
    isEmpty: by.applications.isEmpty(),
    find: by.applications.find(id),
    findExpired: by.applications.findExpired(id),
    list: by.applications.list({ tenantId, size: 1, from: { page: 2 } }),
    update: by.applications.update(tenantId, id, () => ({ modifiedBy: id })),
    delete: by.applications.delete(tenantId, newId(Date.now())),
    noteUses: by.applications.noteUses([{ applicationId: id, at: Date.now() }]),
    createSession: by.sessions.create(session),
    findSession: by.sessions.find(session.id),
    findExpiredSession: by.sessions.findExpired(session.id),
    authorize: by.sessions.authorize(aGrant(session)),
    listSessions: by.sessions.list({ tenantId, size: 1 }),
    deleteSession: by.sessions.delete(tenantId, session.id),
    now: by.now(),
    ping: by.ping(),
  };
  const ends = Object.entries(calls).map(async ([name, call]) => [
    name,
    await Promise.resolve<unknown>(call).then(
      () => "done",
      (error) => (error instanceof StoreUnavailable && error.cause ? "unavailable" : error),
    ),
  ]);
  return Object.fromEntries(await Promise.all(ends));
}

const allEndAs = (end: "done" | "unavailable") =>
  Object.fromEntries(
    [
      ...["create", "isEmpty", "find", "findExpired", "list", "update", "delete", "noteUses"],
      ...["createSession", "findSession", "findExpiredSession", "authorize"],
      ...["listSessions", "deleteSession", "now", "ping"],
    ].map((name) => [name, end]),
  );

/** The trail of a change that its caller may make while it is there. */
function trailBy(caller: ApplicationRecord, events: NewEvent[]): ChangeContext<unknown> {
  return {
    caller: {
      applicationId: caller.id,
      check(found) {
        if (!found) {
          throw new CallerChanged("The caller is gone.");
        }
      },
    },
    entriesFor: () => ({ events }),
  };
}

it("completes a change when every read of its caller is slow", async () => {
  const caller = await store.applications.create(anApplication());
  const lag = { failCommands: ["find"], blockConnection: true, blockTimeMS: 50 };
  await fail("alwaysOn", lag);
  const creating = store.applications.create(anApplication(), trailBy(caller, [anEvent()]));
  const { id } = await creating.finally(() => fail("off"));
  expect(await store.applications.find(id)).toBeDefined();
});

describe("a change whose caller is deleted during the last write", () => {
  it.each(["an application", "a session"])("does not create %s", async (kind) => {
    const caller = await store.applications.create(anApplication());
    const events = [anEvent()];
    const trail = trailBy(caller, events);
    const [application, session] = [anApplication(), aSession(owner)];
    const hasCome = await failing.delayNext("update");
    const change = Promise.allSettled([
      kind === "an application"
        ? store.applications.create(application, trail)
        : store.sessions.create(session, trail),
    ]);
    await hasCome();
    await store.applications.delete(caller.tenantId, caller.id);
    const [{ status, reason }] = (await change) as [PromiseRejectedResult];
    expect([status, reason]).toEqual(["rejected", expect.any(CallerChanged)]);
    expect(await store.applications.find(application.id)).toBeUndefined();
    expect(await store.sessions.find(session.id)).toBeUndefined();
    expect(await listEvents(store, { tenantId: must(events[0]).tenantId })).toEqual([]);
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
  ])("that %s is unavailable, and recovers", async (_, failure) => {
    const failCommands = ["find", "findAndModify", "update", "aggregate", "hello"];
    await fail("alwaysOn", { failCommands, ...failure });
    const ends = await callAll().finally(() => fail("off"));
    expect(ends).toEqual(allEndAs("unavailable"));
    await until(async () => isDeepStrictEqual(await callAll(), allEndAs("done")));
  });

  it("without a majority is unavailable for writes", async () => {
    const writeConcernError = { code: 64, errmsg: "waiting for replication timed out" };
    const { application } = await createBoth(store);
    const failCommands = ["findAndModify", "update", "delete"];
    await fail("alwaysOn", { failCommands, writeConcernError });
    const deleting = store.applications.delete(application.tenantId, application.id);
    await expect(deleting).rejects.toThrow(StoreUnavailable);
    const ends = await callAll().finally(() => fail("off"));
    expect(ends).toMatchObject({ create: "unavailable", noteUses: "unavailable", find: "done" });
  });

  it("that fails after a write, before its response, reports the write on retry", async () => {
    const { application, session } = await createBoth(store);
    const { id, tenantId } = application;
    const errorLabels = ["RetryableWriteError"];
    const writeConcernError = { code: 91, errmsg: "The server is going down.", errorLabels };
    const failOnce = (command: string) =>
      fail({ times: 1 }, { failCommands: [command], writeConcernError });

    await failOnce("findAndModify");
    expect(await store.sessions.authorize(aGrant(session))).toBe("authorized");
    await failOnce("findAndModify");
    let calls = 0;
    const change = () => ({ name: `changed ${++calls}`, modifiedBy: id });
    const changed = await store.applications.update(tenantId, id, change);
    expect(changed).toMatchObject({ name: "changed 1" });
    await failOnce("findAndModify");
    expect(await store.applications.create(anApplication())).toBeDefined();
    await failOnce("findAndModify");
    expect(await store.sessions.delete(tenantId, session.id)).toBe(true);
    await failOnce("delete");
    expect(await store.applications.delete(tenantId, id)).toBe(true);
  });

  it("that is frozen is unavailable, and recovers when resumed", async () => {
    process.kill(mongod.pid, "SIGSTOP");
    const ends = await callAll().finally(() => process.kill(mongod.pid, "SIGCONT"));
    expect(ends).toEqual(allEndAs("unavailable"));
    await until(async () => isDeepStrictEqual(await callAll(), allEndAs("done")));
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
  /** An application whose name grows with each change, of each of which an event tells. */
  async function prepare() {
    const { id, tenantId } = await store.applications.create(anApplication({ name: "" }));
    const trailOf = (answerId?: string, isGivenUp = () => false): ChangeContext<unknown> => ({
      idempotencyId: answerId,
      isCanceled: isGivenUp,
      entriesFor: () => ({
        events: [anEvent({ tenantId }), anEvent({ tenantId })],
        ...(answerId !== undefined && { response: anAnswer() }),
      }),
    });
    const changeThrough = ({ applications }: Store, trail: ChangeContext<unknown>) =>
      applications.update(
        tenantId,
        id,
        ({ name }) => ({ name: `${name}+`, modifiedBy: id }),
        trail,
      );
    return {
      change: (answerId?: string, isGivenUp?: () => boolean) =>
        changeThrough(store, trailOf(answerId, isGivenUp)),
      /** The same, through another store, which does something once the record is written and nothing else is. */
      changeBy: (other: Store, midway: () => void) =>
        changeThrough(other, {
          entriesFor(outcome) {
            midway();
            return trailOf().entriesFor(outcome);
          },
        }),
      /** How often it took effect by the record, and by the events. */
      async counts() {
        const { name } = must(await store.applications.find(id));
        return [name.length, (await listEvents(store, { tenantId })).length / 2];
      },
    };
  }

  it("is committed with a journaled majority, whatever the URI specifies", async () => {
    const uri = withOptions(mongod.uri, { w: "1", journal: "false" });
    const weak = await openMongoStore({ uri, database: "latchkey" });
    const { changeBy } = await prepare();
    const admin = failing.admin.db("admin");
    // The profiler leaves commits out; the log of the server tells of all that took longer than this.
    const toldFrom = (slowms: number) => admin.command({ profile: 0, slowms });
    let commits: Document[] = [];
    await toldFrom(-1);
    try {
      // The server keeps a thousand lines, so on a busy machine ours may be gone.
      await until(async () => {
        await changeBy(weak, () => {});
        const { log } = await admin.command({ getLog: "global" });
        commits = (log as string[])
          .filter((line) => line.includes('"commitTransaction":1'))
          .map((line) => JSON.parse(line).attr.command);
        return commits.length > 0;
      });
    } finally {
      await toldFrom(100);
      await weak.close();
    }
    for (const { writeConcern } of commits) {
      expect(writeConcern).toMatchObject({ w: "majority", j: true });
    }
  });

  const transient = ["TransientTransactionError"];
  const stepped = { code: 189, errmsg: "The primary has stepped down." };

  it.each([
    [
      "the write of the record conflicted",
      ["findAndModify"],
      { errorCode: 112, errorLabels: transient },
    ],
    ["the write of its events conflicted", ["update"], { errorCode: 112, errorLabels: transient }],
    ["the connection was lost", ["update"], { closeConnection: true }],
    ["the commit had no response", ["commitTransaction"], { closeConnection: true }],
    ["the commit did not reach a majority", ["commitTransaction"], { writeConcernError: stepped }],
    [
      "the transaction was unknown to the server",
      ["commitTransaction"],
      { errorCode: 251, errorLabels: transient },
    ],
    [
      "the transaction was unknown to the server and no majority confirmed it",
      ["commitTransaction"],
      { errorCode: 251, writeConcernError: stepped },
    ],
  ])("takes effect once when %s three times", async (_, failCommands, failure) => {
    const { change, counts } = await prepare();
    await fail({ times: 3 }, { failCommands, ...failure });
    const changed = await change().finally(() => fail("off"));
    expect(changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
  });

  it("is not retried after its caller has cancelled", async () => {
    const { change, counts } = await prepare();
    await fail({ times: 1 }, { failCommands: ["update"], errorCode: 112, errorLabels: transient });
    let asked = 0;
    const given = change(undefined, () => asked++ > 0).finally(() => fail("off"));
    await expect(given).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await counts()).toEqual([0, 0]);
  });

  it.each([
    ["has not taken effect", { closeConnection: true }, 0],
    ["has taken effect", { writeConcernError: stepped }, 1],
  ])("fails when no commit gets a response and the change %s", async (_, failure, made) => {
    const { change, counts } = await prepare();
    const id = anAnswerId();
    await fail("alwaysOn", { failCommands: ["commitTransaction"], ...failure });
    // One caller does not wait for it, the other waits for as long as the store tries.
    let asked = 0;
    const given = await change(id, () => made === 0 && ++asked > 3)
      .catch((error) => error)
      .finally(() => fail("off"));
    expect(given).toBeInstanceOf(StoreUnavailable);
    await until(answers);
    expect(await counts()).toEqual([made, made]);
    expect((await store.answers.find(id)) !== undefined).toBe(made === 1);
    if (made) {
      await expect(change(id)).rejects.toBeInstanceOf(AlreadyApplied);
    }
  });

  it("succeeds soon after another instance was disconnected during a change of the same record", async () => {
    const { change, changeBy, counts } = await prepare();
    const proxy = await startProxy(Number(new URL(failing.mongod.uri).port));
    const options = "directConnection=true&serverSelectionTimeoutMS=1500";
    const uri = `${proxy.url.replace("http", "mongodb")}/?${options}`;
    const other = await openMongoStore({ uri, database: "latchkey" });
    await expect(changeBy(other, proxy.cut)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await change()).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
    await other.close();
    await proxy.close();
  });

  it("succeeds when its commit first finds no connection", async () => {
    const { changeBy, counts } = await prepare();
    const uri = `${failing.mongod.uri}&maxPoolSize=1&waitQueueTimeoutMS=600`;
    const narrow = await openMongoStore({ uri, database: "latchkey" });
    const namespace = "latchkey.applications";
    const lag = { failCommands: ["find"], namespace, blockConnection: true, blockTimeMS: 1_500 };
    await fail({ times: 1 }, lag);
    let read: Promise<void> | undefined;
    // It comes after the write of the events, and before the commit.
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
          () => "made",
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
    await until(answers);
    const [made = 0, told] = await counts();
    expect(told).toBe(made);
    expect(made).toBeGreaterThanOrEqual(outcomes.filter((outcome) => outcome === "made").length);
  });
});

describe("a killed MongoDB", () => {
  const follow = useFollowers();

  it("is unavailable and ends subscriptions", async () => {
    const killed = await startFailingMongo();
    try {
      const impatient = await killed.openWithShortTimeout();
      const { tenantId } = killed.application;
      const follower = follow(impatient, tenantId, { heartbeat: 1 });
      await follower.next();
      process.kill(killed.mongod.pid, "SIGKILL");
      await expect(follower.until(() => false)).rejects.toThrow(StoreUnavailable);
      expect(await callAll(impatient)).toEqual(allEndAs("unavailable"));
      await expect(follow(impatient, tenantId).next()).rejects.toThrow(StoreUnavailable);
    } finally {
      await killed.stop();
    }
  });
});

describe("a list request whose caller disconnects", () => {
  /** Makes the server stop at a place of its own, or take no notice of its time limits. */
  const failAt = (configureFailPoint: string, mode: string, data: Document = {}) =>
    failing.admin.db("admin").command({ configureFailPoint, mode, data });

  /** How many reads the server is at for the store. */
  async function reads(): Promise<number> {
    const ofStore = { appName: "latchkey", "command.find": { $exists: true } };
    const { inprog } = await failing.admin.db("admin").command({ currentOp: 1, ...ofStore });
    return inprog.length;
  }

  it.each(["events", "applications", "sessions"] as const)(
    "stops the query of %s on the server",
    async (name) => {
      const query = { tenantId: owner.tenantId, size: 1, from: { page: 1 } };
      const caller = new AbortController();
      const reason = new Error("the caller went away");
      const place = { nss: `latchkey.${name}`, shouldCheckForInterrupt: true };
      await failAt("maxTimeNeverTimeOut", "alwaysOn");
      await failAt("waitInFindBeforeMakingBatch", "alwaysOn", place);
      try {
        const abandoned = store[name].list(query, caller.signal);
        abandoned.catch(() => {});
        await until(async () => (await reads()) > 0);
        caller.abort(reason);
        await expect(abandoned).rejects.toBe(reason);
        await until(async () => (await reads()) === 0);
      } finally {
        await failAt("waitInFindBeforeMakingBatch", "off");
        await failAt("maxTimeNeverTimeOut", "off");
      }
      expect(await answers()).toBe(true);
    },
  );
});
