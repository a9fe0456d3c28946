import {
  type ChangeStream,
  type ChangeStreamOptions,
  type Db,
  type Document,
  type ResumeToken,
  Timestamp,
} from "mongodb";
import { StoreUnavailable } from "../store.js";
import {
  clusterTimeOfMark,
  clusterTimeOfToken,
  lastOrdinal,
  markOf,
  timestampOf,
} from "./position.js";
import { limits } from "./reach.js";

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
