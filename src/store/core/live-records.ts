import { waitForNextTick } from "../../lib/event-loop.js";
import type { LiveRecords, RecordKind, Records } from "../port/change.js";
import type { ApplicationRecord } from "../port/records.js";
import { isLive, parentIdsOf, withParents } from "./liveness.js";
import type { RecordReader } from "./record-reader.js";

type Reader = Pick<RecordReader, "now" | "find" | "readAfter">;

/** Returns the live ones of some records with their parents, which are read once. The others are undefined. */
export async function resolveAll<K extends RecordKind>(
  reader: Pick<Reader, "now" | "find">,
  kind: K,
  records: readonly (Records[K] | undefined)[],
): Promise<(LiveRecords[K] | undefined)[]> {
  const ids = new Set(records.flatMap((record) => (record ? parentIdsOf(kind, record) : [])));
  const parents = new Map<string, ApplicationRecord | undefined>();
  await Promise.all(
    Array.from(ids, async (id) => parents.set(id, await reader.find("application", id))),
  );
  const now = await reader.now();
  return records.map((record) => {
    const found = record && withParents(kind, record, (id) => parents.get(id));
    return isLive(kind, found, now) ? found : undefined;
  });
}

/** Reads live records of all tenants after an id. Skips long runs of others batch by batch. */
export async function readLive<K extends RecordKind>(
  reader: Reader,
  kind: K,
  after: string | undefined,
  limit: number,
): Promise<readonly Records[K][]> {
  let last = after;
  for (;;) {
    const records = await reader.readAfter(kind, last, limit);
    const live = await resolveAll(reader, kind, records);
    const found = records.filter((_, index) => live[index] !== undefined);
    const end = records.at(-1);
    if (found.length > 0 || end === undefined) {
      return found;
    }
    last = end.id;
    await waitForNextTick();
  }
}
