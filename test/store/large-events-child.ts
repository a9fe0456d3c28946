/**
 * A process that is to do with little memory while events are large, for tests:
 *
 *     node --max-old-space-size=… --import tsx test/store/large-events-child.ts lmdb <path>
 *     node --max-old-space-size=… --import tsx test/store/large-events-child.ts mongo <uri> <database>
 *
 * It tells in JSON how many events each of those who read them has seen.
 */
import { randomUUID } from "node:crypto";
import { openLmdbStore } from "../../src/store/lmdb/store.js";
import { openMongoStore } from "../../src/store/mongo/store.js";
import { exportRecords } from "../../src/transfer/export.js";
import { aLargeEvent, anEvent } from "../contract/store/event-fixtures.js";

const [, , engine, place = "", database = ""] = process.argv;
const count = 60;
const tenantId = randomUUID();
const { signal } = new AbortController();
const store =
  engine === "lmdb"
    ? await openLmdbStore({ path: place })
    : await openMongoStore({ uri: place, database });

function follow(after?: string) {
  const batches = store.events.follow({ tenantId, after, heartbeat: 1_000, signal });
  return batches[Symbol.asyncIterator]();
}

async function countTold(batches: ReturnType<typeof follow>): Promise<number> {
  let told = 0;
  while (told < count) {
    const { value } = await batches.next();
    told += value.events.length;
  }
  return told;
}

async function countListed(kind: string): Promise<number> {
  let listed = 0;
  let after: string | undefined;
  do {
    const { target } = large;
    const query = { tenantId, kind, target: target.applicationId, size: 100, after };
    const page = await store.events.list(query);
    listed += page.items.length;
    after = page.next;
  } while (after !== undefined);
  return listed;
}

async function countExported(): Promise<number> {
  let exported = 0;
  for await (const part of exportRecords({ store, withEvents: true })) {
    exported = part.counts.events;
  }
  return exported;
}

const large = aLargeEvent(1_000, { tenantId });
const watching = follow();
const start = (await watching.next()).value.position;
const told = countTold(watching);
for (let added = 0; added < count; added++) {
  await store.events.add([large]);
  await store.events.add([{ ...large, tenantId: anEvent().tenantId }]);
}
const seen = {
  told: await told,
  toldAgain: await countTold(follow(start)),
  listed: await countListed(large.kind),
  listedOfNone: await countListed("rare"),
  exported: await countExported(),
};
console.log(JSON.stringify(seen));
process.exit();
