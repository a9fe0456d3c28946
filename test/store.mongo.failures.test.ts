import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { newId } from "../src/ids.js";
import { reach } from "../src/store/mongo/reach.js";
import { StoreUnavailable } from "../src/store/store.js";
import { aGrant, anApplication, aSession, createBoth } from "./store-contract/fixtures.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
import { until } from "./support/until.js";

describe("a MongoDB that fails", () => {
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

  /** Makes every kind of call at once, and tells how each ended and how long it took them. */
  async function callAll(): Promise<{ ends: Record<string, unknown>; took: number }> {
    const { id, tenantId } = owner;
    const session = aSession(owner);
    const calls = {
      create: store.applications.create(anApplication()),
      isEmpty: store.applications.isEmpty(),
      find: store.applications.find(id),
      findExpired: store.applications.findExpired(id),
      list: store.applications.list({ tenantId, size: 1, from: { page: 2 } }),
      update: store.applications.update(tenantId, id, () => ({ modifiedBy: id })),
      delete: store.applications.delete(tenantId, newId(Date.now())),
      noteUses: store.applications.noteUses([{ applicationId: id, at: Date.now() }]),
      createSession: store.sessions.create(session),
      findSession: store.sessions.find(session.id),
      findExpiredSession: store.sessions.findExpired(session.id),
      authorize: store.sessions.authorize(aGrant(session)),
      listSessions: store.sessions.list({ tenantId, size: 1 }),
      deleteSession: store.sessions.delete(tenantId, session.id),
      now: store.now(),
      ping: store.ping(),
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

  const answers = () =>
    store.ping().then(
      () => true,
      () => false,
    );

  it.each([
    ["has no primary", { errorCode: 10_107 }],
    ["changes its primary", { errorCode: 189 }],
    ["shuts down", { errorCode: 11_600 }],
    ["takes too long", { errorCode: 50 }],
    ["cannot make sure of what it reads", { errorCode: 187 }],
    ["has ended what took too long", { errorCode: 290 }],
    ["hangs up", { closeConnection: true }],
  ])("because it %s is unavailable, and as good as before afterwards", async (_, failure) => {
    const failCommands = ["find", "findAndModify", "update", "aggregate", "hello"];
    await fail("alwaysOn", { failCommands, ...failure });
    const ends = await callAll().finally(() => fail("off"));
    expect(ends).toEqual(allEndAs("unavailable"));
    await until(answers, 10_000);
    expect(await callAll()).toEqual(allEndAs("done"));
  });

  it("because it has no majority to write to is unavailable for writes", async () => {
    const writeConcernError = { code: 64, errmsg: "waiting for replication timed out" };
    const { application } = await createBoth(store);
    const failCommands = ["findAndModify", "update", "delete"];
    await fail("alwaysOn", { failCommands, writeConcernError });
    const deleting = store.applications.delete(application.tenantId, application.id);
    await expect(deleting).rejects.toThrow(StoreUnavailable);
    const ends = await callAll().finally(() => fail("off"));
    expect(ends).toMatchObject({ create: "unavailable", noteUses: "unavailable", find: "done" });
  });

  it("after it made a write, but before it said so, tells the truth when asked again", async () => {
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

  it("because it is frozen is unavailable, and as good as before when it thaws", async () => {
    process.kill(mongod.pid, "SIGSTOP");
    const ends = await callAll().finally(() => process.kill(mongod.pid, "SIGCONT"));
    expect(ends).toEqual(allEndAs("unavailable"));
    await until(answers, 10_000);
    expect(await callAll()).toEqual(allEndAs("done"));
  });

  it("because it was killed is unavailable", async () => {
    process.kill(mongod.pid, "SIGKILL");
    expect(await callAll()).toEqual(allEndAs("unavailable"));
  });
});

describe("reaching the data", () => {
  it("takes a broken socket for what it is", async () => {
    const cause = Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" });
    const outcome = await reach(() => Promise.reject(cause)).catch((error) => error);
    expect(outcome).toBeInstanceOf(StoreUnavailable);
    expect(outcome.cause).toBe(cause);
  });

  it("leaves a mistake a mistake", async () => {
    const mistake = new TypeError("undefined is not a function");
    await expect(reach(() => Promise.reject(mistake))).rejects.toBe(mistake);
  });
});
