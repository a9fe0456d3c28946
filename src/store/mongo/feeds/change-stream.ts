/** A change stream whose events have offsets, and positions to resume from. */
import {
  type ChangeStream,
  type ChangeStreamOptions,
  type Db,
  type Document,
  type ResumeToken,
  Timestamp,
} from "mongodb";
import { StoreUnavailable } from "../../port/errors.js";
import { limitsOf } from "../driver-call.js";

/** How long the server waits for an event before it returns none. */
const maxAwaitTimeMS = 100;

/** The common fields of all events. */
export interface StreamEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
}

/** An event, or none if there is no new event. */
export interface Step<E> {
  readonly event?: E;
  /** After the event and all previous ones. */
  readonly offset: string;
  /** All events up to this offset have been delivered. */
  readonly passed: string;
}

/** The events of a database that match a pipeline, each with its offset. */
export interface EventStream<E> {
  next(): Promise<Step<E>>;
  close(): Promise<void>;
}

/** Offsets count the matching events, so they are valid only for streams with the same pipeline. */
export function openEventStream<E extends StreamEvent>(
  db: Db,
  pipeline: Document[],
  start: string,
  options: ChangeStreamOptions = {},
): EventStream<E> {
  let clusterTime = clusterTimeOfOffset(start);
  let stream = watch(timestampOf(clusterTime));
  let ordinal = 0;

  function watch(startAtOperationTime: Timestamp): ChangeStream<Document, E> {
    return db.watch<Document, E>(pipeline, {
      ...options,
      startAtOperationTime,
      maxAwaitTimeMS,
      ...limitsOf({ db }),
    });
  }

  return {
    async next() {
      for (;;) {
        const event = await stream.tryNext();
        if (!event && stream.closed) {
          // A closed stream would return immediately, forever.
          throw new StoreUnavailable("MongoDB has closed the change stream.");
        }
        if (!event) {
          const reached = clusterTimeOfToken(stream.resumeToken);
          [clusterTime, ordinal] = reached > clusterTime ? [reached, 0] : [clusterTime, ordinal];
          const offset = offsetOf(clusterTime, ordinal);
          return {
            offset: offset > start ? offset : start,
            passed: offsetOf(reached, lastOrdinal),
          };
        }
        const at = clusterTimeOfToken(event._id);
        [clusterTime, ordinal] = at === clusterTime ? [clusterTime, ordinal + 1] : [at, 1];
        if (event.operationType === "invalidate") {
          await stream.close();
          stream = watch(following(timestampOf(clusterTime)));
        }
        const offset = offsetOf(clusterTime, ordinal);
        // The stream starts with all events of the cluster time of its start.
        if (offset > start) {
          // More of the same cluster time may follow.
          return { event, offset, passed: offsetOf(clusterTime, 0) };
        }
      }
    },

    close: () => stream.close(),
  };
}

/** The next timestamp. After a database was dropped, the new stream starts there. */
function following({ t, i }: Timestamp): Timestamp {
  return new Timestamp({ t, i: i + 1 });
}

/** How far a follower has read. */
export interface Position {
  /** The offset of the last event of the change stream. */
  readonly offset: string;
  /** Expirations up to this moment were delivered. */
  readonly scannedTo: number;
}

/**
 * The offset of an event in a change stream: the cluster time, then a number for
 * events with the same cluster time. Offsets sort as strings. They replace resume
 * tokens, which contain the id of a document that may be of another tenant.
 */
export function offsetOf(clusterTime: string, ordinal: number): string {
  return clusterTime + hex(ordinal);
}

/** After every event of a cluster time. */
export const lastOrdinal = 0xffff_ffff;

/** A cluster time as the first part of an offset. */
export function clusterTimeOf({ t, i }: Timestamp): string {
  return hex(t) + hex(i);
}

export function clusterTimeOfOffset(offset: string): string {
  return offset.slice(0, 16);
}

export function timestampOf(clusterTime: string): Timestamp {
  return new Timestamp({
    t: Number.parseInt(clusterTime.slice(0, 8), 16),
    i: Number.parseInt(clusterTime.slice(8, 16), 16),
  });
}

/** The cluster time that the stream has reached. */
export function clusterTimeOfToken(token: ResumeToken): string {
  const { _data: data } = token as { readonly _data?: unknown };
  const [, clusterTime] = /^82([0-9A-F]{16})/i.exec(String(data)) ?? [];
  if (!clusterTime) {
    throw new Error("MongoDB returned a resume token in an unknown format.");
  }
  return clusterTime.toLowerCase();
}

export function formatPosition({ offset, scannedTo }: Position): string {
  return `${offset}.${scannedTo}`;
}

export function parsePosition(text: string): Position | undefined {
  const [, offset, scannedTo] = /^([0-9a-f]{24})\.([0-9]{1,16})$/.exec(text) ?? [];
  return offset && scannedTo ? { offset, scannedTo: Number(scannedTo) } : undefined;
}

function hex(number: number): string {
  return number.toString(16).padStart(8, "0");
}
