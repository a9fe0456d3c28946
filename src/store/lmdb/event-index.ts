import { writeId } from "../../lib/uuid.js";
import type { EventQuery, NewEvent, Principal } from "../port/events.js";
import { emptyValue } from "./row-keys.js";
import type { Tables } from "./tables.js";

/**
 * The keys of `event-index`, which end with the number of an event:
 *
 *     tenant, 0, time, number           all events of a tenant
 *     tenant, 1, id, time, number       by each id of the target
 *     tenant, 2, id, time, number       by each id of the actor
 *
 * The time makes a period one range of the index, even if the clock was set
 * back while events were written.
 */
const all = 0;
const byTarget = 1;
const byActor = 2;
const tenantSize = 16;
const headSize = tenantSize + 1;
const idSize = 16;
const numberSize = 8;
const positionSize = 8 + numberSize;

/** The position of an event among those of its tenant. */
export interface EventPosition {
  readonly at: number;
  readonly number: number;
}

/** The part of a query that the index uses. */
type IndexQuery = Omit<EventQuery, "size">;

export interface EventIndex {
  add(event: NewEvent, position: EventPosition): void;
  remove(event: NewEvent, position: EventPosition): void;

  /** The numbers of candidate events before a position, newest first. */
  numbersBefore(query: IndexQuery, position: EventPosition, limit?: number): number[];

  /** The numbers of a tenant's events at one time. */
  numbersAt(tenantId: string, at: number): number[];
}

export function createEventIndex({ eventIndex: table }: Tables): EventIndex {
  const put = (key: Buffer) => void table.put(key, emptyValue);
  const remove = (key: Buffer) => void table.remove(key);

  return {
    add: (event, position) => forEachKey(event, position, put),
    remove: (event, position) => forEachKey(event, position, remove),

    numbersBefore(query, position, limit = Number.MAX_SAFE_INTEGER) {
      const start = keyFor(query, position);
      // Numbers start at one, so this sorts before all events of its time.
      const end = keyFor(query, { at: query.since ?? 0, number: 0 });
      const keys = table.getKeys({ reverse: true, start, exclusiveStart: true, end, limit });
      return Array.from(keys, numberIn);
    },

    numbersAt(tenantId, at) {
      const start = writeKey(newKey(0), tenantId, all, { at, number: 0 });
      const end = writeKey(newKey(0), tenantId, all, { at: at + 1, number: 0 });
      return Array.from(table.getKeys({ start, end }), numberIn);
    },
  };
}

function numberIn(key: Buffer): number {
  return Number(key.readBigUInt64BE(key.length - numberSize));
}

/** The distinct ids of a principal. */
function idsOf(principal: Principal | undefined): string[] {
  const ids: string[] = [];
  for (const id of [principal?.applicationId, principal?.sessionId, principal?.keyId]) {
    if (id !== undefined && !ids.includes(id)) {
      ids.push(id);
    }
  }
  return ids;
}

const keyOfAll = newKey(0);
const keyOfId = newKey(idSize);

/** Hot path: most events have five keys. The buffers are reused, because lmdb copies them. */
function forEachKey(event: NewEvent, position: EventPosition, visit: (key: Buffer) => void): void {
  const { tenantId, target, actor } = event;
  visit(writeKey(keyOfAll, tenantId, all, position));
  for (const id of idsOf(target)) {
    writeId(id, keyOfId, headSize);
    visit(writeKey(keyOfId, tenantId, byTarget, position));
  }
  for (const id of idsOf(actor)) {
    writeId(id, keyOfId, headSize);
    visit(writeKey(keyOfId, tenantId, byActor, position));
  }
}

/** A new key at a position of the most selective index. */
function keyFor({ tenantId, target, actor }: IndexQuery, position: EventPosition): Buffer {
  const id = target ?? actor;
  if (id !== undefined) {
    const key = newKey(idSize);
    writeId(id, key, headSize);
    return writeKey(key, tenantId, target === undefined ? byActor : byTarget, position);
  }
  return writeKey(newKey(0), tenantId, all, position);
}

function newKey(subjectSize: number): Buffer {
  return Buffer.alloc(headSize + subjectSize + positionSize);
}

/** Writes all but the subject. */
function writeKey(
  key: Buffer,
  tenantId: string,
  tag: number,
  { at, number }: EventPosition,
): Buffer {
  writeId(tenantId, key, 0);
  key[tenantSize] = tag;
  key.writeDoubleBE(at, key.length - positionSize);
  key.writeUInt32BE(Math.floor(number / 2 ** 32), key.length - numberSize);
  key.writeUInt32BE(number >>> 0, key.length - numberSize + 4);
  return key;
}
