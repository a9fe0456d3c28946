/** When a client reopens a watch stream, and the delay before it does. All times are in milliseconds. */

/** Missed heartbeats before the stream counts as dead. */
const maxMissedHeartbeats = 4;
/** With short heartbeats, opening a connection may take longer than a few of them. */
const minSilenceTimeout = 2_000;
/** Heartbeats that the stream may lag behind before it is reopened to measure the clock offset again. */
const maxLagHeartbeats = 2;
/** A lagging stream is kept at least this long, to avoid reopening in a loop. */
const minStreamAge = 5_000;
/** The clocks of two machines drift. Reopening the stream measures their offset again. */
const maxStreamAge = 60_000;
const maxDelay = 2_000;

/** The delay after a stream that worked. */
export const minReconnectDelay = 50;

/** The delay after the next failure (exponential backoff). */
export function nextReconnectDelay(delay: number): number {
  return Math.min(delay * 2, maxDelay);
}

/** How long a stream may be silent before it counts as dead. */
export function silenceTimeout(heartbeat: number): number {
  return Math.max(heartbeat * maxMissedHeartbeats, minSilenceTimeout);
}

interface StreamProgress {
  readonly now: number;
  readonly opened: number;
  /** All changes up to this time have arrived. */
  readonly reached: number;
  readonly heartbeat: number;
}

/** Whether the stream can stay open. */
export function canKeepStream({ now, opened, reached, heartbeat }: StreamProgress): boolean {
  const age = now - opened;
  const isLagging = now - reached > heartbeat * maxLagHeartbeats && age > minStreamAge;
  return isClockPlausible(reached, now) && !isLagging && age <= maxStreamAge;
}

/** A server time in the future means that the local clock was paused, so ages are unreliable. */
export function isClockPlausible(reached: number, now: number): boolean {
  return reached <= now;
}
