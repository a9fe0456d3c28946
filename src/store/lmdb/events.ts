import { yieldToEventLoop } from "../../lib/event-loop.js";
import { isManager } from "../port/applications.js";
import {
  checkpointName,
  type EventFilter,
  type EventPage,
  type EventQuery,
  type EventRange,
  type EventRecord,
  type EventStore,
  type Expiration,
  firstCheckpoint,
  isFarBehind,
  isReportable,
  isUsableCheckpoint,
  matchesEventFilter,
  type NewEvent,
} from "../port/events.js";
import { type Clock, createPageBudget } from "../port/store.js";
import type { ApplicationIndex } from "./application-index.js";
import { type Environment, runCallback } from "./environment.js";
import type { EventIndex, EventPosition } from "./event-index.js";
import type { EventLog, LoggedEvent } from "./event-log.js";
import type { ApplicationRecords } from "./records.js";
import { parseExpirationKey, timeBytes, timeOf } from "./row-keys.js";

export function createEventStore(
  environment: Environment,
  log: EventLog,
  index: EventIndex,
  { follow, addExpirationEvents }: Pick<EventStore, "follow" | "addExpirationEvents">,
): EventStore {
  return {
    async add(events) {
      await environment.write(() => {
        for (const event of events) {
          log.append(event);
        }
      });
    },

    ...createEventQueries(environment, log, index),

    follow,

    addExpirationEvents,
  };
}

/** Events read per tick of the event loop. */
const maxEventsPerTick = 200;

/** Events read for a page. If few of them match, the page is not full. */
const maxEventsPerPage = 10_000;

interface Found {
  readonly event: EventRecord;
  readonly size: number;
  readonly position: EventPosition;
}

/** The matches of one batch. */
interface Batch {
  readonly found: readonly Found[];
  /** Where to continue. Absent at the end. */
  readonly next?: EventPosition | undefined;
}

function createEventQueries(
  { read }: Environment,
  log: EventLog,
  index: EventIndex,
): Pick<EventStore, "list" | "count"> {
  /** Reads up to `limit` candidate events before a position. Fewer if they are large. */
  function readBatch(query: EventRange, start: EventPosition, limit: number): Batch {
    return read(() => {
      const numbers = index.numbersBefore(query, start, limit);
      const budget = createPageBudget();
      const found: Found[] = [];
      let position = start;
      for (const number of numbers) {
        const { size, at, event: readEvent } = log.find(number) as LoggedEvent;
        if (!budget.tryAdd(size)) {
          return { found, next: position };
        }
        position = { at, number };
        const event = readEvent();
        if (matchesEventFilter(event, query)) {
          found.push({ event, size, position });
        }
      }
      return { found, next: numbers.length === limit ? position : undefined };
    });
  }

  async function list(query: EventQuery, signal?: AbortSignal): Promise<EventPage> {
    const budget = createPageBudget();
    const items: EventRecord[] = [];
    let last: EventPosition | undefined;
    let position = startOf(query);
    for (let read = 0; position && read < maxEventsPerPage; read += maxEventsPerTick) {
      signal?.throwIfAborted();
      const wanted = isCoveredByIndex(query) ? query.size + 1 - items.length : maxEventsPerTick;
      const { found, next } = readBatch(query, position, Math.min(wanted, maxEventsPerTick));
      for (const { event, size, position } of found) {
        if (items.length === query.size || !budget.tryAdd(size)) {
          return { items, next: last && formatPosition(last) };
        }
        items.push(event);
        last = position;
      }
      position = next;
      if (position) {
        await yieldToEventLoop();
      }
    }
    return { items, ...(position && { next: formatPosition(position) }) };
  }

  async function count(
    range: EventRange,
    limit: number,
    signal?: AbortSignal,
  ): Promise<number | undefined> {
    signal?.throwIfAborted();
    const candidates = read(() => index.numbersBefore(range, endOf(range), limit + 1)).length;
    if (candidates > limit || isCoveredByIndex(range)) {
      return candidates > limit ? undefined : candidates;
    }
    let matches = 0;
    let position: EventPosition | undefined = endOf(range);
    // Large events make a batch smaller, so the number of batches is limited.
    for (let read = 0; position; read += maxEventsPerTick) {
      if (read >= limit) {
        return undefined;
      }
      await yieldToEventLoop();
      signal?.throwIfAborted();
      const batch: Batch = readBatch(range, position, maxEventsPerTick);
      matches += batch.found.length;
      position = batch.next;
    }
    return matches;
  }

  return { list, count };
}

/** Whether the index finds only matches. */
function isCoveredByIndex({ target, actor, kind }: EventFilter): boolean {
  return kind === undefined && (target === undefined || actor === undefined);
}

/** The position after the newest event of a range. */
function endOf({ until }: EventRange): EventPosition {
  return { at: until ?? Number.POSITIVE_INFINITY, number: 0 };
}

/** The position to start before, or undefined for an invalid `after`. */
function startOf(query: EventQuery): EventPosition | undefined {
  const { after } = query;
  const end = endOf(query);
  if (after === undefined) {
    return end;
  }
  const [, at, number] = /^(\d{1,15})-(\d{1,15})$/.exec(after) ?? [];
  if (at === undefined) {
    return undefined;
  }
  const position = { at: Number(at), number: Number(number) };
  return position.at < end.at ? position : end;
}

function formatPosition({ at, number }: EventPosition): string {
  return `${at}-${number}`;
}

/** Expirations read per transaction, so that requests do not wait long. */
const batchSize = 200;

/**
 * Reports expirations once. A checkpoint per lead time stores the key of the
 * last expiration that was read, or a time up to which there was none.
 * Expirations that are added before the checkpoint belong to credentials that
 * were created, or whose expiry was moved earlier, within the lead time. They are
 * not reported.
 */
export function createExpirationEvents(
  { read, write, tables }: Environment,
  applications: ApplicationRecords,
  index: ApplicationIndex,
  log: EventLog,
  clock: Clock,
) {
  const { expirations, meta } = tables;

  function checkpointOf(leadTime: number): Buffer | undefined {
    const written = meta.get(checkpointName(leadTime));
    const checkpoint = written === undefined ? undefined : Buffer.from(written, "hex");
    return checkpoint && isUsableCheckpoint(timeOf(checkpoint), leadTime, clock())
      ? checkpoint
      : undefined;
  }

  function startOf(leadTime: number): Buffer {
    return checkpointOf(leadTime) ?? timeBytes(firstCheckpoint(leadTime, clock()));
  }

  function due(leadTime: number): Buffer[] {
    const end = timeBytes(clock() + leadTime + 1);
    return [
      ...expirations.getKeys({
        start: startOf(leadTime),
        exclusiveStart: true,
        end,
        limit: batchSize,
      }),
    ];
  }

  /** Whether an expiration is due, or the checkpoint has fallen behind. */
  function isBehind(leadTime: number): boolean {
    const checkpoint = checkpointOf(leadTime);
    const isOld = !checkpoint || isFarBehind(timeOf(checkpoint), leadTime, clock());
    return isOld || due(leadTime).length > 0;
  }

  /** Returns the expiration of a row if it must be reported. */
  function expirationOf(key: Buffer, leadTime: number): Expiration | undefined {
    const { at, applicationId, keyId } = parseExpirationKey(key);
    const application = applications.find(applicationId);
    const subject =
      keyId === undefined ? application : application?.keys.find(({ id }) => id === keyId);
    if (!application || !subject) {
      return undefined;
    }
    const {
      tenantId,
      name,
      expiresAt: applicationExpiresAt = Number.POSITIVE_INFINITY,
    } = application;
    const times = { at, createdAt: subject.createdAt, applicationExpiresAt };
    if (!isReportable(times, leadTime, clock())) {
      return undefined;
    }
    const leavesNoManager =
      keyId === undefined && isManager(application) && !index.hasOtherManager(application, at);
    return { tenantId, applicationId, name, keyId, at, leavesNoManager };
  }

  function report(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): number {
    const keys = due(leadTime);
    for (const key of keys) {
      const expiration = expirationOf(key, leadTime);
      if (expiration) {
        for (const event of runCallback(() => toEvents(expiration))) {
          log.append(event);
        }
      }
    }
    const last = keys.at(-1) ?? startOf(leadTime);
    const reached = keys.length < batchSize ? later(last, timeBytes(clock() + leadTime)) : last;
    meta.put(checkpointName(leadTime), reached.toString("hex"));
    return keys.length;
  }

  return async function addExpirationEvents(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): Promise<number> {
    return read(() => isBehind(leadTime)) ? write(() => report(leadTime, toEvents)) : 0;
  };
}

function later(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}
