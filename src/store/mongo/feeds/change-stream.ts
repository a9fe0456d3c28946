import {
  type ChangeStream,
  type ChangeStreamOptions,
  type Db,
  type Document,
  type ResumeToken,
  Timestamp,
} from "mongodb";
import { StoreUnavailable } from "../../port/errors.js";
import { limits } from "../reach.js";

/** How long the server waits for an event before it answers that there is none, in milliseconds. */
const patience = 100;

/** What is known of an event of whatever kind. */
export interface StreamEvent {
  readonly _id: ResumeToken;
  readonly operationType: string;
}

/** One step along the stream: an event, or that there is none now. */
export interface Step<E> {
  readonly event?: E;
  /** Behind the event and all before it. */
  readonly mark: string;
  /** Nothing at or before this mark is yet to come. */
  readonly passed: string;
}

/** The events of a database that a pipeline lets through, each with its mark. */
export interface EventStream<E> {
  next(): Promise<Step<E>>;
  close(): Promise<void>;
}

/** Marks number the events that come through, so they go for streams of the same pipeline only. */
export function openEventStream<E extends StreamEvent>(
  db: Db,
  pipeline: Document[],
  start: string,
  options: ChangeStreamOptions = {},
): EventStream<E> {
  let clusterTime = clusterTimeOfMark(start);
  let stream = watch(timestampOf(clusterTime));
  let ordinal = 0;

  function watch(startAtOperationTime: Timestamp): ChangeStream<Document, E> {
    return db.watch<Document, E>(pipeline, {
      ...options,
      startAtOperationTime,
      fullDocumentBeforeChange: "whenAvailable",
      maxAwaitTimeMS: patience,
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
          const mark = markOf(clusterTime, ordinal);
          return { mark: mark > start ? mark : start, passed: markOf(reached, lastOrdinal) };
        }
        const at = clusterTimeOfToken(event._id);
        [clusterTime, ordinal] = at === clusterTime ? [clusterTime, ordinal + 1] : [at, 1];
        if (event.operationType === "invalidate") {
          await stream.close();
          stream = watch(following(timestampOf(clusterTime)));
        }
        const mark = markOf(clusterTime, ordinal);
        // The stream starts with all events of the cluster time of its start.
        if (mark > start) {
          // More of the same cluster time may follow.
          return { event, mark, passed: markOf(clusterTime, 0) };
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
  /** The mark of the last event of the change stream that was told. */
  readonly mark: string;
  /** The moment up to which expiries were told. */
  readonly scannedTo: number;
}

/**
 * A place among the events of a change stream: the cluster time, then a number
 * for each of the events that share it. Marks sort as text in the order of
 * events. They take the place of resume tokens, which name the document last
 * changed, of whatever tenant.
 */
export function markOf(clusterTime: string, ordinal: number): string {
  return clusterTime + hex(ordinal);
}

/** After every event of a cluster time. */
export const lastOrdinal = 0xffff_ffff;

/** A cluster time as the first part of a mark. */
export function clusterTimeOf({ t, i }: Timestamp): string {
  return hex(t) + hex(i);
}

export function clusterTimeOfMark(mark: string): string {
  return mark.slice(0, 16);
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

export function formatPosition({ mark, scannedTo }: Position): string {
  return `${mark}.${scannedTo}`;
}

export function parsePosition(text: string): Position | undefined {
  const [, mark, scannedTo] = /^([0-9a-f]{24})\.([0-9]{1,16})$/.exec(text) ?? [];
  return mark && scannedTo ? { mark, scannedTo: Number(scannedTo) } : undefined;
}

/** What lies behind one of two positions at least. */
export function latest(one: Position, other: Position): Position {
  return {
    mark: one.mark > other.mark ? one.mark : other.mark,
    scannedTo: Math.max(one.scannedTo, other.scannedTo),
  };
}

function hex(number: number): string {
  return number.toString(16).padStart(8, "0");
}
