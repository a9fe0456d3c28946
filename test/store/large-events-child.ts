/**
 * Writes and reads large events with little memory, for tests:
 *
 *     node --max-old-space-size=… --import tsx test/store/large-events-child.ts lmdb <path>
 *     node --max-old-space-size=… --import tsx test/store/large-events-child.ts mongo <uri> <database>
 *
 * Prints as JSON how many events each reader received.
 */
import { randomUUID } from "node:crypto";
import { openLmdbStore } from "../../src/store/lmdb/store.js";
import { openMongoStore } from "../../src/store/mongo/store.js";
import { exportRecords } from "../../src/transfer/export.js";
import { aLargeEvent, anEvent } from "../contract/store/event-fixtures.js";

const [, , engine, location = "", database = ""] = process.argv;
const count = 60;
const tenantId = randomUUID();
const { signal } = new AbortController();
const store =
  engine === "lmdb"
    ? await openLmdbStore({ path: location })
    : await openMongoStore({ uri: location, database });

function follow(after?: string) {
  const batches = store.events.follow({ tenantId, after, heartbeat: 1_000, signal });
  return batches[Symbol.asyncIterator]();
}

async function countReceived(batches: ReturnType<typeof follow>): Promise<number> {
  let received = 0;
  while (received < count) {
    const { value } = await batches.next();
    received += value.events.length;
  }
  return received;
}

async function countListed(kind: string): Promise<number> {
  let listed = 0;
  let after: string | undefined;
  do {
    const { target } = large;
    const query = { tenantId, kinds: [kind], target: target.applicationId, size: 100, after };
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
const follower = follow();
const start = (await follower.next()).value.position;
const received = countReceived(follower);
for (let added = 0; added < count; added++) {
  await store.events.add([large]);
  await store.events.add([{ ...large, tenantId: anEvent().tenantId }]);
}
const counts = {
  received: await received,
  receivedAfterResume: await countReceived(follow(start)),
  listed: await countListed(large.kind),
  listedOfUnusedKind: await countListed("unused"),
  exported: await countExported(),
};
console.log(JSON.stringify(counts));
process.exit();
