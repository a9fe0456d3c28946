import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { StoreUnavailable } from "../src/store/store.js";
import { update } from "./store-contract/fixtures.js";
import { told } from "./store-contract/followed.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
import { useFollowers } from "./support/follow.js";
import { until } from "./support/until.js";

describe("following a MongoDB that fails", () => {
  const follow = useFollowers();
  let failing: FailingMongo;
  let mongod: FailingMongo["mongod"];
  let store: FailingMongo["store"];
  let application: FailingMongo["application"];
  let fail: FailingMongo["fail"];

  beforeAll(async () => {
    failing = await startFailingMongo();
    ({ mongod, store, application, fail } = failing);
  });

  afterAll(() => failing?.stop());

  const updated = () => told("updated", application.id);

  const answers = () =>
    store.ping().then(
      () => true,
      () => false,
    );

  it.each([
    ["hangs up", { closeConnection: true }],
    ["changes its primary", { errorCode: 189, errorLabels: ["ResumableChangeStreamError"] }],
    ["lost the cursor", { errorCode: 43 }],
  ])("misses nothing where it %s once", async (_, failure) => {
    const follower = follow(store, application.tenantId);
    await follower.next();
    await fail({ times: 1 }, { failCommands: ["getMore"], ...failure });
    await update(store, application);
    expect(await follower.next()).toMatchObject({ changes: [updated()], missed: false });
  });

  it("claims nothing that a stream which lags has not told", async () => {
    const follower = follow(store, application.tenantId, { beat: 1 });
    await follower.next();
    const lags = await failing.lag("getMore");
    await lags();
    await update(store, application);
    const acknowledged = performance.now();
    for (;;) {
      const { changes, completeUntil } = await follower.next();
      if (changes.length > 0) {
        break;
      }
      expect(completeUntil).toBeLessThan(acknowledged);
    }
  });

  it.each([
    ["has no primary", { errorCode: 10_107 }, ["aggregate", "getMore"]],
    ["hangs up", { closeConnection: true }, ["aggregate", "getMore"]],
    ["hangs up on scans", { closeConnection: true }, ["aggregate"]],
    ["has forgotten where the stream was", { errorCode: 286 }, ["getMore"]],
  ])(
    "ends for all where it %s, and continues for those who come back",
    async (_, failure, failCommands) => {
      const followers = [1, 2].map(() => follow(store, application.tenantId, { beat: 1 }));
      for (const one of followers) {
        await one.next();
      }
      const pausing = follow(store, application.tenantId);
      await pausing.next();
      await fail("alwaysOn", { failCommands, ...failure });
      for (const one of followers) {
        await expect(one.until(() => false)).rejects.toThrow(StoreUnavailable);
      }
      const refused = follow(store, application.tenantId);
      await expect(refused.next()).rejects.toThrow();
      await fail("off");
      await until(answers, 10_000);
      await update(store, application);
      const [after = ""] = followers.map((one) => one.position());
      const again = follow(store, application.tenantId, { after });
      expect(await again.next()).toMatchObject({ changes: [updated()], missed: false });
    },
  );

  it.each([
    ["history is lost", 286],
    ["position makes no sense", 260],
  ])("says that changes may be missing where the %s", async (_, errorCode) => {
    const follower = follow(store, application.tenantId);
    await follower.next();
    follower.stop();
    await update(store, application);
    const after = follower.position();
    const again = follow(store, application.tenantId, { after });
    const namespace = "latchkey.$cmd.aggregate";
    await fail({ times: 1 }, { failCommands: ["aggregate"], namespace, errorCode });
    expect(await again.next()).toMatchObject({ changes: [], missed: true });
    await update(store, application);
    expect(await again.next()).toMatchObject({ changes: [updated()], missed: false });
  });

  it("claims nothing while it is frozen, and continues when it thaws", async () => {
    const follower = follow(store, application.tenantId, { beat: 1 });
    await follower.next();
    const slow = follow(store, application.tenantId);
    await slow.next();
    process.kill(mongod.pid, "SIGSTOP");
    const frozenAt = performance.now();
    const claims: number[] = [];
    const claim = async () => {
      for (;;) {
        claims.push((await follower.next()).completeUntil ?? 0);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const leaving = follow(store, application.tenantId);
    const left = leaving.step();
    leaving.stop();
    expect(await left).toMatchObject({ done: true });
    await expect(claim()).rejects.toThrow(StoreUnavailable);
    await expect(slow.next()).rejects.toThrow(StoreUnavailable);
    process.kill(mongod.pid, "SIGCONT");
    expect(claims).toEqual([...new Set(claims)].filter((moment) => moment <= frozenAt));
    await until(answers, 10_000);
    await update(store, application);
    const again = follow(store, application.tenantId, { after: slow.position() });
    expect(await again.next()).toMatchObject({ changes: [updated()], missed: false });
  });

  it("ends where it was killed", async () => {
    const follower = follow(store, application.tenantId, { beat: 1 });
    await follower.next();
    process.kill(mongod.pid, "SIGKILL");
    await expect(follower.until(() => false)).rejects.toThrow(StoreUnavailable);
    await expect(follow(store, application.tenantId).next()).rejects.toThrow(StoreUnavailable);
  });
});
