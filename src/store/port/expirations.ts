import { expiredRetention } from "./records.js";

// Stores report expirations up to a checkpoint for each lead time.

/** Milliseconds by which a checkpoint may lag: moving it costs a commit. */
const slack = 60_000;

/** Milliseconds by which a checkpoint may be ahead after a clock correction. */
const maxAhead = 24 * 3_600_000;

/** The facts that decide whether to report an expiration. */
export interface ExpirationFacts {
  readonly at: number;
  /** When the application or key was created. */
  readonly createdAt: number;
  readonly applicationExpiresAt: number;
}

/** The name of the checkpoint of a lead time. */
export function checkpointName(lead: number): string {
  return `expirations-reported-${lead}`;
}

/** Whether a checkpoint is usable. One that was written while the clock was far ahead would suppress reports. */
export function isUsableCheckpoint(time: number, lead: number, now: number): boolean {
  return time <= now + lead + maxAhead;
}

/** Where to start without a checkpoint. */
export function firstCheckpoint(lead: number, now: number): number {
  return now - (lead === 0 ? expiredRetention : 0);
}

/** Whether a checkpoint must be moved although nothing is due. */
export function isFarBehind(time: number, lead: number, now: number): boolean {
  return time < now + lead - slack;
}

/**
 * Whether to report an expiration. Not reported are keys that expire earlier
 * with their application, credentials that were created within the lead time,
 * and, ahead of time, those that have already expired.
 */
export function isReportable(
  { at, createdAt, applicationExpiresAt }: ExpirationFacts,
  lead: number,
  now: number,
): boolean {
  const isInTime = lead === 0 || (at > now && applicationExpiresAt > now);
  return isInTime && at <= applicationExpiresAt && createdAt <= at - lead;
}
