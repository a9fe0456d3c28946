import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { StoreUnavailable } from "../src/store/store.js";
import { AnswerKept, type Trail } from "../src/store/trail.js";
import { anEvent, listEvents } from "./store-contract/event-fixtures.js";
import { anApplication, must, times } from "./store-contract/fixtures.js";
import { anAnswer, anAnswerId } from "./store-contract/trailed-changes.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
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
    const trailOf = (answerId?: string): Trail<unknown> => ({
      answerId,
      entriesFor: () => ({
        events: [anEvent({ tenantId }), anEvent({ tenantId })],
        ...(answerId !== undefined && { answer: anAnswer() }),
      }),
    });
    return {
      change: (answerId?: string) =>
        store.applications.update(
          tenantId,
          id,
          ({ name }) => ({ name: `${name}+`, modifiedBy: id }),
          trailOf(answerId),
        ),
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
  ])("is made once though %s, three times", async (_, failCommands, failure) => {
    const { change, counts } = await prepare();
    await fail({ times: 3 }, { failCommands, ...failure });
    const changed = await change().finally(() => fail("off"));
    expect(changed).toMatchObject({ name: "+" });
    expect(await counts()).toEqual([1, 1]);
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
