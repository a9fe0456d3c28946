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
      const keys = rangesOf(query).map((range) => {
        const start = keyIn(range, position);
        // Numbers start at one, so this sorts before all events of its time.
        const end = keyIn(range, { at: query.since ?? 0, number: 0 });
        return [...table.getKeys({ reverse: true, start, exclusiveStart: true, end, limit })];
      });
      return mergeNewest(keys).slice(0, limit).map(numberIn);
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

/** A part of the index: all events of a tenant, or those with an id. */
interface IndexRange {
  readonly tenantId: string;
  readonly tag: number;
  readonly id?: string;
}

/** The part of the index that has the fewest candidates. For a principal, the two parts with its id. */
function rangesOf({ tenantId, principal, target, actor }: IndexQuery): readonly IndexRange[] {
  if (target !== undefined) {
    return [{ tenantId, tag: byTarget, id: target }];
  }
  if (actor !== undefined) {
    return [{ tenantId, tag: byActor, id: actor }];
  }
  return principal === undefined
    ? [{ tenantId, tag: all }]
    : [byTarget, byActor].map((tag) => ({ tenantId, tag, id: principal }));
}

/** A new key at a position in a part of the index. */
function keyIn({ tenantId, tag, id }: IndexRange, position: EventPosition): Buffer {
  const key = newKey(id === undefined ? 0 : idSize);
  if (id !== undefined) {
    writeId(id, key, headSize);
  }
  return writeKey(key, tenantId, tag, position);
}

/** Merges the keys of one or two parts, newest first. An event in both occurs once. */
function mergeNewest([first = [], second = []]: readonly (readonly Buffer[])[]): readonly Buffer[] {
  const merged: Buffer[] = [];
  let next = 0;
  for (const key of first) {
    for (let other = second[next]; other; other = second[next]) {
      const order = comparePositions(other, key);
      if (order < 0) {
        break;
      }
      if (order > 0) {
        merged.push(other);
      }
      next++;
    }
    merged.push(key);
  }
  return [...merged, ...second.slice(next)];
}

/** Compares two keys that have an id by their positions. */
function comparePositions(one: Buffer, other: Buffer): number {
  const start = headSize + idSize;
  return one.compare(other, start, other.length, start, one.length);
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
