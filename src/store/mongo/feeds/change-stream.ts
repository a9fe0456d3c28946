import {
  type ChangeStream,
  type ChangeStreamOptions,
  type Db,
  type Document,
  type ResumeToken,
  Timestamp,
} from "mongodb";
import { StoreUnavailable } from "../../port/errors.js";
import { limits } from "../driver-call.js";

/** How long the server waits for an event before it answers that there is none, in milliseconds. */
const maxAwaitTimeMS = 100;

/** What is known of an event of whatever kind. */
export interface StreamEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
}

/** One step along the stream: an event, or that there is none now. */
export interface Step<E> {
  readonly event?: E;
  /** Behind the event and all before it. */
  readonly offset: string;
  /** Nothing at or before this offset is yet to come. */
  readonly passed: string;
}

/** The events of a database that a pipeline lets through, each with its offset. */
export interface EventStream<E> {
  next(): Promise<Step<E>>;
  close(): Promise<void>;
}

/** Offsets number the events that come through, so they go for streams of the same pipeline only. */
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
      fullDocumentBeforeChange: "whenAvailable",
      maxAwaitTimeMS,
      ...limits,
    });
  }

  return {
    async next() {
      for (;;) {
        const event = await stream.tryNext();
        if (!event && stream.closed) {
          // One that the server has ended would say so at once and for ever.
          throw new StoreUnavailable("MongoDB has ended the change stream.");
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

/** A stream ends when its database is dropped; what follows is another. */
function following({ t, i }: Timestamp): Timestamp {
  return new Timestamp({ t, i: i + 1 });
}

/** How far the telling of changes has come. */
export interface Position {
  /** The offset of the last event of the change stream that was told. */
  readonly offset: string;
  /** The moment up to which expiries were told. */
  readonly scannedTo: number;
}

/**
 * A place among the events of a change stream: the cluster time, then a number
 * for each of the events that share it. Offsets sort as text in the order of
 * events. They take the place of resume tokens, which name the document last
 * changed, of whatever tenant.
 */
export function offsetOf(clusterTime: string, ordinal: number): string {
  return clusterTime + hex(ordinal);
}

/** After every event of a cluster time. */
export const lastOrdinal = 0xffff_ffff;

/** A cluster time as the first part of a offset. */
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

/** The cluster time up to which a resume token vouches for the stream. */
export function clusterTimeOfToken(token: ResumeToken): string {
  const { _data: data } = token as { readonly _data?: unknown };
  const [, clusterTime] = /^82([0-9A-F]{16})/i.exec(String(data)) ?? [];
  if (!clusterTime) {
    throw new Error("MongoDB gave a resume token of a form that is not known.");
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

/** What lies behind one of two positions at least. */
export function latest(one: Position, other: Position): Position {
  return {
    offset: one.offset > other.offset ? one.offset : other.offset,
    scannedTo: Math.max(one.scannedTo, other.scannedTo),
  };
}

function hex(number: number): string {
  return number.toString(16).padStart(8, "0");
}
