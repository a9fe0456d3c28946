import { setImmediate } from "node:timers/promises";
import { type Change, type ChangeFeed, type FollowOptions, largestBatch } from "../store.js";
import type { ChangeLog } from "./change-log.js";
import type { Environment } from "./environment.js";
import type { LogWatch } from "./log-watch.js";

/** What the log holds for a tenant after a position. */
interface Reading {
  readonly changes: readonly Change[];
  readonly missed: boolean;
  readonly position: number;
  readonly completeUntil?: number;
}

/**
 * A follower is no more than its position in the log, from which it reads when
 * it is asked for a batch. One that nobody asks costs nothing, and in the end
 * finds that the log has gone on without it.
 */
export function createChangeFeed(
  { read }: Environment,
  log: ChangeLog,
  watch: LogWatch,
): ChangeFeed {
  return {
    async *follow({ tenantId, after, beat, signal }: FollowOptions) {
      let position = after === undefined ? undefined : positionOf(after);
      let nextBeat = performance.now();
      while (!signal.aborted) {
        const reading = readFrom(position, tenantId);
        position = reading.position;
        const { changes, missed, completeUntil } = reading;
        if (changes.length > 0 || missed || performance.now() >= nextBeat) {
          nextBeat = performance.now() + beat;
          yield { changes, missed, position: String(position), completeUntil };
        } else if (completeUntil === undefined) {
          await setImmediate();
        } else {
          position = await watch.wait({ tenantId, position, until: nextBeat, signal });
        }
      }
    },
  };

  /** Reads on from a position, or starts at the end of the log where there is none. */
  function readFrom(position: number | undefined, tenantId: string): Reading {
    const now = performance.now();
    return read(() => {
      const last = log.last();
      const nothing = { changes: [], position: last, completeUntil: now };
      if (position === undefined || position === last) {
        return { ...nothing, missed: false };
      }
      const entries = log.after(position, largestBatch);
      const [next] = entries;
      if (next?.number !== position + 1 || log.isOld(next)) {
        return { ...nothing, missed: true };
      }
      const reached = position + entries.length;
      return {
        changes: entries.filter((entry) => entry.tenantId === tenantId).map(({ change }) => change),
        missed: false,
        position: reached,
        ...(reached === last && { completeUntil: now }),
      };
    });
  }
}

/** What is no position of ours becomes one that the log never reaches. */
function positionOf(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER;
}
