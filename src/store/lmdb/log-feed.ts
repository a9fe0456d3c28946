import { nextTurn } from "../../next-turn.js";
import type { FollowOptions } from "../changes.js";
import type { Environment } from "./environment.js";
import { createLogWatch } from "./log-watch.js";
import type { LogEntry, NumberedLog } from "./numbered-log.js";

/** How many entries, of whatever tenants, are read in one turn of the event loop. */
const mostPerTurn = 1_000;

export interface LogBatch<E> {
  /** Those of the tenant. */
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: string;
  /** The moment up to which nothing is missing; absent where more follows at once. */
  readonly completeUntil?: number | undefined;
}

/** What the log holds for a tenant after a position. */
interface Reading<E> {
  readonly entries: readonly E[];
  readonly missed: boolean;
  readonly position: number;
  readonly completeUntil?: number;
}

export interface LogFeedOptions<E> {
  /** How many entries a batch may hold. */
  readonly largest: number;
  /** Whether what follows a position can be relied on, by the entry that does. */
  readonly continuesWith: (entry: E) => boolean;
  /** From where to go on where a position cannot be continued from. */
  readonly restart: (position: number) => number;
}

/**
 * A follower is no more than its position in the log, from which it reads when
 * it is asked for a batch. One that nobody asks costs nothing, and in the end
 * finds that the log has gone on without it.
 */
export function createLogFeed<E extends LogEntry>(
  environment: Environment,
  log: NumberedLog<E>,
  { largest, continuesWith, restart }: LogFeedOptions<E>,
) {
  const watch = createLogWatch(environment, log);

  /** Reads on from a position, or starts at the end of the log where there is none. */
  function readFrom(position: number | undefined, tenantId: string): Reading<E> {
    const now = performance.now();
    return environment.read(() => {
      const last = log.last();
      const { reached, ...reading } = read(position ?? last, last, tenantId);
      return { ...reading, position: reached, ...(reached === last && { completeUntil: now }) };
    });
  }

  function read(position: number, last: number, tenantId: string) {
    if (position === last) {
      return { entries: [], missed: false, reached: last };
    }
    const all = log.after(position, mostPerTurn);
    const [next] = all;
    if (next?.number !== position + 1 || !continuesWith(next)) {
      return { entries: [], missed: true, reached: restart(position) };
    }
    const entries = all.filter((entry) => entry.tenantId === tenantId).slice(0, largest);
    const furthest = entries.length === largest ? entries.at(-1) : all.at(-1);
    return { entries, missed: false, reached: furthest?.number ?? last };
  }

  return async function* follow(options: FollowOptions): AsyncGenerator<LogBatch<E>, void> {
    const { tenantId, after, beat, signal } = options;
    let position = after === undefined ? undefined : positionOf(after);
    let nextBeat = performance.now();
    while (!signal.aborted) {
      const reading = readFrom(position, tenantId);
      position = reading.position;
      const { entries, missed, completeUntil } = reading;
      if (entries.length > 0 || missed || performance.now() >= nextBeat) {
        nextBeat = performance.now() + beat;
        yield { entries, missed, position: String(position), completeUntil };
      } else if (completeUntil === undefined) {
        await nextTurn();
      } else {
        position = await watch.wait({ tenantId, position, until: nextBeat, signal });
      }
    }
  };
}

/** What is no position of ours becomes one that the log never reaches. */
function positionOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER;
}
