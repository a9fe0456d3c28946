/** When a stream is opened anew, and how long to wait before. All times are in milliseconds. */

/** Heartbeats that may be missed before the stream is opened anew. */
const patience = 4;
/** Opening a connection may take long where heartbeats are short. */
const shortestSilence = 2_000;
/** Heartbeats that knowledge may lag behind before the stream is opened anew to measure better. */
const toleratedLag = 2;
/** A stream lives at least so long, however far behind: to open one after the other helps nobody. */
const shortestStream = 5_000;
/** The clocks of two machines drift apart: their distance is measured anew by opening the stream anew. */
const longestStream = 60_000;
const longestPause = 2_000;

/** The pause after a stream that went well. */
export const shortestPause = 50;

/** The pause to make next time, where the stream breaks again after this one. */
export function nextPause(pause: number): number {
  return Math.min(pause * 2, longestPause);
}

/** How long nothing may be heard before the stream is given up. */
export function longestSilence(heartbeat: number): number {
  return Math.max(heartbeat * patience, shortestSilence);
}

interface StreamProgress {
  readonly present: number;
  readonly opened: number;
  /** Up to when no change is missing. */
  readonly reached: number;
  readonly heartbeat: number;
}

/** Whether a stream need not be opened anew yet. */
export function isGoodForMore({ present, opened, reached, heartbeat }: StreamProgress): boolean {
  const age = present - opened;
  const lagsBehind = present - reached > heartbeat * toleratedLag && age > shortestStream;
  return isPossible(reached, present) && !lagsBehind && age <= longestStream;
}

/** The service cannot be ahead of us: where it seems so our own clock stood still, and says nothing of age. */
export function isPossible(reached: number, present: number): boolean {
  return reached <= present;
}
