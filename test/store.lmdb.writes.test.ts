import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type ChangeLog, createChangeLog } from "../src/store/lmdb/change-log.js";
import { type Environment, openEnvironment } from "../src/store/lmdb/environment.js";
import { StoreUnavailable } from "../src/store/store.js";
import { times } from "./store-contract/fixtures.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";

const folder = useLmdbFolder();

describe("writes in LMDB that wait at the same time", () => {
  let environment: Environment;
  let log: ChangeLog;

  beforeEach(async () => {
    environment = await openEnvironment(folder.path(), 60_000);
    log = createChangeLog(environment, Date.now);
  });

  afterEach(() => environment.close());

  function writtenOf(id: string): string | undefined {
    return environment.read(() => environment.tables.counts.get(id));
  }

  /** Writes a value and an entry of the log, both of an id. */
  function writeBoth(id: string, value: string): void {
    environment.tables.counts.put(id, value);
    log.append(id, { kind: "updated", applicationId: id, at: 0 });
  }

  it("share a transaction, and each gets its own answer", async () => {
    const ids = times(50, () => randomUUID());
    const answers = await Promise.all(
      ids.map((id, index) =>
        environment.write(() => {
          writeBoth(id, String(index));
          return { index, attempt: environment.attempt() };
        }),
      ),
    );
    expect(answers.map(({ index }) => index)).toEqual(times(50, (index) => index));
    expect(ids.map(writtenOf)).toEqual(times(50, String));
    expect(new Set(answers.map(({ attempt }) => attempt)).size).toBeLessThan(5);
  });

  it("see what those before them wrote", async () => {
    const id = randomUUID();
    const { counts } = environment.tables;
    const add = () =>
      environment.write(() => {
        const sum = Number(counts.get(id) ?? 0) + 1;
        counts.put(id, String(sum));
        return sum;
      });
    expect(await Promise.all(times(20, add))).toEqual(times(20, (index) => index + 1));
  });

  it("take back only their own where they throw, and leave no gap in the log", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }), async (fates) => {
        const before = environment.read(log.last);
        const entries = fates.map((fails) => ({ fails, id: randomUUID(), error: new Error("no") }));
        const outcomes = await Promise.allSettled(
          entries.map(({ fails, id, error }) =>
            environment.write(() => {
              writeBoth(id, "written");
              if (fails) {
                throw error;
              }
              return id;
            }),
          ),
        );
        expect(outcomes).toEqual(
          entries.map(({ fails, id, error }) =>
            fails ? { status: "rejected", reason: error } : { status: "fulfilled", value: id },
          ),
        );
        for (const { fails, id } of entries) {
          expect(writtenOf(id)).toBe(fails ? undefined : "written");
        }
        const kept = entries.filter(({ fails }) => !fails);
        const logged = environment.read(() => log.after(before, 100));
        expect(logged.map(({ tenantId }) => tenantId)).toEqual(kept.map(({ id }) => id));
        expect(logged.map(({ number }) => number)).toEqual(
          kept.map((_, index) => before + index + 1),
        );
      }),
      { numRuns: 40 },
    );
  });

  it("are told once for all of them, before they resolve", async () => {
    const told: string[] = [];
    environment.onWrite(() => told.push("written"));
    await Promise.all(
      times(10, async () => {
        await environment.write(() => writeBoth(randomUUID(), "1"));
        told.push("resolved");
      }),
    );
    expect(told[0]).toBe("written");
    expect(told.filter((word) => word === "resolved")).toHaveLength(10);
    expect(told.filter((word) => word === "written").length).toBeLessThan(5);
  });

  it("are refused when the data has been closed", async () => {
    await environment.close();
    await expect(environment.write(() => 1)).rejects.toBeInstanceOf(StoreUnavailable);
  });
});
