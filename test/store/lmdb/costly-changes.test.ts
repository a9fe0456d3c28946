import { describe, expect, it } from "@jest/globals";
import {
  type ApplicationChange,
  type ApplicationRecord,
  changedApplication,
} from "../../../src/store/port/records.js";
import { anApplication } from "../../contract/store/fixtures.js";
import { createTestClock } from "../../support/clock.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";

const folder = useLmdbFolder();

describe("a costly change", () => {
  async function prepare() {
    const clock = createTestClock();
    const store = await folder.open({ clock: clock.now });
    const created = await store.applications.create(anApplication(), audit.created);

    /** Changes the application. `onDecide` runs with each decision. */
    function change(
      fields: Partial<ApplicationChange>,
      isCostly: boolean,
      onDecide: (current: ApplicationRecord) => void = () => {},
    ) {
      const { id } = created;
      return store.change<"application", Record<never, never>, ApplicationRecord>({
        target: { kind: "application", id },
        reads: {},
        isCostly,
        decide({ target }, now) {
          const current = target as ApplicationRecord;
          onDecide(current);
          const changed = changedApplication(current, { ...fields, modifiedBy: id }, now);
          return { put: changed, result: changed };
        },
      });
    }
    return { clock, store, created, change };
  }

  it("is decided once, before it waits for other writes", async () => {
    const { change } = await prepare();
    const order: string[] = [];
    const others = [1, 2].map((each) => change({}, false, () => order.push(`other ${each}`)));
    const costly = change({}, true, () => order.push("costly"));
    expect(order).toEqual(["costly"]);
    await Promise.all([...others, costly]);
    expect(order.filter((each) => each === "costly").length).toBeGreaterThanOrEqual(1);
  });

  it("is decided again if its records changed meanwhile, and loses neither change", async () => {
    const { store, created, change } = await prepare();
    const names: string[] = [];
    const first = change({ name: "first" }, false);
    const costly = change({ description: "second" }, true, ({ name }) => names.push(name));
    await Promise.all([first, costly]);
    expect(names).toEqual([created.name, "first"]);
    const stored = await store.applications.find(created.id);
    expect([stored?.name, stored?.description, stored?.version]).toEqual([
      "first",
      "second",
      created.version + 2,
    ]);
  });

  it("is decided again if it waited for more than a second", async () => {
    const { clock, change } = await prepare();
    const decidedAt: number[] = [];
    await change({}, true, () => {
      decidedAt.push(clock.now());
      clock.advance(decidedAt.length === 1 ? 1_001 : 1_000);
    });
    expect(decidedAt).toHaveLength(2);
  });

  it("is made at last if its records change before every attempt", async () => {
    const { store, created, change } = await prepare();
    let decisions = 0;
    let changes = 0;
    const changing: Promise<unknown>[] = [];
    await change({ description: "made" }, true, () => {
      decisions++;
      changing.push(change({ name: `${++changes}` }, false));
    });
    await Promise.all(changing);
    // The last decision holds the lock, and the change that it starts waits.
    expect(decisions).toBe(6);
    const stored = await store.applications.find(created.id);
    expect([stored?.description, stored?.name]).toEqual(["made", "6"]);
  });

  it("keeps a use that was recorded after its decision", async () => {
    const { store, created, change } = await prepare();
    const at = created.createdAt + 1_000;
    const recorded = store.applications.recordUses([{ applicationId: created.id, at }]);
    await Promise.all([recorded, change({ name: "used" }, true)]);
    const stored = await store.applications.find(created.id);
    expect([stored?.name, stored?.lastUsedAt]).toEqual(["used", at]);
  });

  it("is refused as it was decided", async () => {
    const { change } = await prepare();
    const refuse = () => {
      throw new Error("refused");
    };
    await expect(change({}, true, refuse)).rejects.toThrow("refused");
  });
});
