import { describe, expect, it } from "@jest/globals";
import { scanExpiries } from "../src/store/mongo/expiry-scan.js";
import { timeOf } from "../src/store/mongo/time.js";
import { anApplication, aSession, must, times } from "./store-contract/fixtures.js";
import { useMongo } from "./support/mongo.js";

const { createDatabase, open } = useMongo();

/** When applications and sessions expire, in milliseconds after the start. */
const cases: Record<string, [applications: number[], sessions: number[]]> = {
  "one after the other": [
    [1, 3, 5, 7, 9],
    [2, 4, 6, 8, 10],
  ],
  "many at one moment": [
    [1, 4, 4, 4, 4, 4, 4, 4, 9],
    [4, 4, 4, 5],
  ],
  "first all of the one kind": [times(8, (n) => n + 1), times(8, (n) => n + 20)],
  "all of one kind": [[], times(9, (n) => n)],
  "none at all": [[], []],
};

describe("scans for what has expired", () => {
  it.each(Object.entries(cases))(
    "tell all once and in order, however little one may hold, of %s",
    async (_, [ofApplications, ofSessions]) => {
      const db = createDatabase();
      const start = Date.now();
      const end = start + 100;
      let now = start;
      const { applications, sessions } = await open(db, { clock: () => now });
      const owner = await applications.create(anApplication());
      const ends = new Map<string, number>();
      for (const at of ofApplications) {
        const { id } = await applications.create(anApplication({ expiresAt: start + at }));
        ends.set(id, start + at);
      }
      for (const ttl of ofSessions) {
        const { id } = must(await sessions.create(aSession(owner, { ttl })));
        ends.set(id, start + ttl);
      }
      await applications.create(anApplication({ expiresAt: end + 1 }));
      now = end;

      for (const limit of [1, 2, 3, 100]) {
        const told: [id: string, at: number][] = [];
        let from = start - 1;
        for (let isAll = false; !isAll; ) {
          const scan = await scanExpiries(
            db,
            timeOf(() => now),
            from,
            {},
            limit,
          );
          told.push(
            ...scan.expiries.map(({ change }): [string, number] => [
              change.sessionId ?? change.applicationId,
              change.at,
            ]),
          );
          expect(scan.until).toBeGreaterThan(from);
          ({ until: from, isAll } = scan);
        }
        expect(from).toBe(end);
        expect(new Map(told)).toEqual(ends);
        expect(told).toHaveLength(ends.size);
        const moments = told.map(([, at]) => at);
        expect(moments).toEqual(moments.toSorted((one, other) => one - other));
      }
    },
  );
});
