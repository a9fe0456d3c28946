import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { openMongoStore } from "../src/store/mongo.js";
import { type Store, StoreUnavailable } from "../src/store/store.js";
import { AnswerKept, type Trail } from "../src/store/trail.js";
import { anEvent, listEvents } from "./store-contract/event-fixtures.js";
import { anApplication, must, times } from "./store-contract/fixtures.js";
import { anAnswer, anAnswerId } from "./store-contract/trailed-changes.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
import { startProxy } from "./support/proxy.js";
import { until } from "./support/until.js";

describe("a change and its trail, of a MongoDB that fails", () => {
  let failing: FailingMongo;
  let store: FailingMongo["store"];
  let fail: FailingMongo["fail"];

  beforeAll(async () => {
    failing = await startFailingMongo();
    ({ store, fail } = failing);
  });

  afterAll(() => failing?.stop());

  /** An application whose name grows with each change, of each of which an event tells. */
  async function prepare() {
    const { id, tenantId } = await store.applications.create(anApplication({ name: "" }));
    const trailOf = (answerId?: string, isGivenUp = () => false): Trail<unknown> => ({
      answerId,
      isGivenUp,
      entriesFor: () => ({
        events: [anEvent({ tenantId }), anEvent({ tenantId })],
        ...(answerId !== undefined && { answer: anAnswer() }),
      }),
    });
    const changeThrough = ({ applications }: Store, trail: Trail<unknown>) =>
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

  const answers = () =>
    store.ping().then(
      () => true,
      () => false,
    );

  const transient = ["TransientTransactionError"];
  const stepped = { code: 189, errmsg: "The primary has stepped down." };

  it.each([
    [
      "the write of the record met with another",
      ["findAndModify"],
      { errorCode: 112, errorLabels: transient },
    ],
    [
      "the write of its events met with another",
      ["update"],
      { errorCode: 112, errorLabels: transient },
    ],
    ["the connection was lost on the way", ["update"], { closeConnection: true }],
    ["the commit was not answered", ["commitTransaction"], { closeConnection: true }],
    [
      "the commit was made by no majority yet",
      ["commitTransaction"],
      { writeConcernError: stepped },
    ],
    [
      "the transaction was not known any more",
      ["commitTransaction"],
      { errorCode: 251, errorLabels: transient },
    ],
    [
      "the transaction was not known any more, which no majority bore out",
      ["commitTransaction"],
      { errorCode: 251, writeConcernError: stepped },
    ],
  ])("is made once though %s, three times", async (_, failCommands, failure) => {
    const { change, counts } = await prepare();
    await fail({ times: 3 }, { failCommands, ...failure });
    const changed = await change().finally(() => fail("off"));
    expect(changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
  });

  it("is not tried again once nobody waits for it", async () => {
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
  ])("is given up where no commit is answered, though it %s", async (_, failure, made) => {
    const { change, counts } = await prepare();
    const id = anAnswerId();
    await fail("alwaysOn", { failCommands: ["commitTransaction"], ...failure });
    const given = await change(id)
      .catch((error) => error)
      .finally(() => fail("off"));
    expect(given).toBeInstanceOf(StoreUnavailable);
    await until(answers, 10_000);
    expect(await counts()).toEqual([made, made]);
    expect((await store.answers.find(id)) !== undefined).toBe(made === 1);
    if (made) {
      await expect(change(id)).rejects.toBeInstanceOf(AnswerKept);
    }
  });

  it("is made soon though an instance that changed the same was cut off before its commit", async () => {
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
  }, 30_000);

  it("is made though its commit found no connection at first", async () => {
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

  it("takes effect where it is answered, and not where it is refused, while the primary changes", async () => {
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
    await until(answers, 30_000);
    const [made = 0, told] = await counts();
    expect(told).toBe(made);
    expect(made).toBeGreaterThanOrEqual(outcomes.filter((outcome) => outcome === "made").length);
  });
});
