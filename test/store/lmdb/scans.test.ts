import { describe, expect, it } from "@jest/globals";
import { anEvent } from "../../contract/store/event-fixtures.js";
import {
  anApplication,
  aSession,
  createWithSession,
  times,
} from "../../contract/store/fixtures.js";
import { countTicksUntil } from "../../support/event-loop.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";

const folder = useLmdbFolder();

/** Enough rows that no list reads all of them in one tick. */
const manyRows = 2_000;

/** A list that reads all rows of a tenant and finds none of them. */
type Scan = (signal?: AbortSignal) => Promise<{ readonly items: readonly unknown[] }>;

async function scanEvents({ events }: OperableStore, rows: number): Promise<Scan> {
  const { tenantId, target } = anEvent();
  await events.add(times(rows, () => anEvent({ tenantId, target })));
  const query = { tenantId, target: target.applicationId, kinds: ["application.deleted"], size: 1 };
  return (signal) => events.list(query, signal);
}

async function scanApplications({ applications }: OperableStore, rows: number): Promise<Scan> {
  const { tenantId } = anApplication();
  const creates = times(rows, () =>
    applications.create(anApplication({ tenantId }), audit.created),
  );
  await Promise.all(creates);
  const filter = { namePrefix: "till", type: "public" } as const;
  return (signal) => applications.list({ tenantId, filter, size: 1, from: { page: 1 } }, signal);
}

async function scanSessions(store: OperableStore, rows: number): Promise<Scan> {
  const { application } = await createWithSession(store);
  const { tenantId } = application;
  await Promise.all(times(rows, () => store.sessions.create(aSession(application))));
  return (signal) => store.sessions.list({ tenantId, authorized: true, size: 1 }, signal);
}

describe.each([
  ["events", scanEvents],
  ["applications", scanApplications],
  ["sessions", scanSessions],
])("a long scan of %s", (_, prepare) => {
  it("stops when its caller aborts", async () => {
    const scan = await prepare(await folder.open(), manyRows);
    const total = await countTicksUntil(scan());
    const caller = new AbortController();
    const reason = new Error("the caller disconnected");
    const aborted = scan(caller.signal);
    caller.abort(reason);
    expect(await countTicksUntil(aborted)).toBeLessThan(total);
    await expect(aborted).rejects.toBe(reason);
  });

  it("shares the event loop with other scans", async () => {
    const scan = await prepare(await folder.open(), manyRows);
    // The lowest of several: other work on the machine makes a scan yield more often.
    const alone: number[] = [];
    for (let run = 0; run < 5; run++) {
      alone.push(await countTicksUntil(scan()));
    }
    const one = Math.min(...alone);
    const scans = times(10, () => scan());
    expect(await countTicksUntil(Promise.all(scans))).toBeGreaterThan(8 * one);
    expect((await Promise.all(scans)).flatMap(({ items }) => items)).toEqual([]);
  });

  it("starts in its own tick, however short it is", async () => {
    const scan = await prepare(await folder.open(), 2);
    const scans = times(10, () => scan());
    expect(await countTicksUntil(Promise.all(scans))).toBeGreaterThanOrEqual(10);
  });
});
