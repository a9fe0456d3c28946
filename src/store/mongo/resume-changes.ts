import { changeRetention } from "../changes.js";
import { StoreUnavailable } from "../store.js";
import { type ChangeHub, type ChangeSource, startChangeHub } from "./change-hub.js";
import { type Present, readPresent } from "./expiry-scan.js";
import { clusterTimeOfMark, lastOrdinal, markOf, type Position, timestampOf } from "./position.js";

/** Starts to publish what is after a position, or after the present where that is too old to go on from. */
export async function resumeChanges(
  source: ChangeSource,
  after: Position | undefined,
): Promise<ChangeHub> {
  const present = await readPresent(source.db, source.time);
  if (after && isRecent(after, present)) {
    const past = { ...after, scannedTo: Math.min(after.scannedTo, present.now) };
    try {
      return await startChangeHub(source, past);
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        throw error;
      }
      // The server does not know that position any more.
    }
  }
  const mark = markOf(present.clusterTime, lastOrdinal);
  return startChangeHub(source, { mark, scannedTo: present.now });
}

/** While a database is idle, its cluster time stands still for some seconds. */
const longestStandstill = 60_000;

function isRecent(after: Position, { now, clusterTime }: Present): boolean {
  const markTime = clusterTimeOfMark(after.mark);
  const sinceMark = (timestampOf(clusterTime).t - timestampOf(markTime).t) * 1_000;
  return (
    now - after.scannedTo <= changeRetention &&
    // One that is ahead would keep the changes until then from all who follow.
    markTime <= clusterTime &&
    sinceMark <= changeRetention + longestStandstill
  );
}
