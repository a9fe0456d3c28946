import { expiredRetention } from "./records.js";

/** How far, in milliseconds, a mark may lie behind where nothing has to be told: to move it costs a commit. */
const slack = 60_000;

/** How far ahead, in milliseconds, a mark may lie of what could be told: clocks are set by less. */
const mostAhead = 24 * 3_600_000;

/** What decides whether to tell of an end. */
export interface EndFacts {
  readonly at: number;
  /** When what ends was made. */
  readonly createdAt: number;
  /** When its application ends, be that before. */
  readonly applicationEndsAt: number;
}

/** The name of the mark up to which ends are told so long ahead. */
export function markName(lead: number): string {
  return `ends-told-${lead}`;
}

/** Whether to go on from a mark. One from when the clock was far ahead would silence all ends until then. */
export function isGoodMark(moment: number, lead: number, now: number): boolean {
  return moment <= now + lead + mostAhead;
}

/** Where to begin without a mark. */
export function firstMark(lead: number, now: number): number {
  return now - (lead === 0 ? expiredRetention : 0);
}

/** Whether a mark is to be moved, though there is nothing to tell. */
export function isFarBehind(moment: number, lead: number, now: number): boolean {
  return moment < now + lead - slack;
}

/**
 * Whether to tell of an end that was found. What ends earlier with its
 * application is not told of, nor, ahead of time, what has ended, nor what was
 * made within the lead.
 */
export function isToTell(
  { at, createdAt, applicationEndsAt }: EndFacts,
  lead: number,
  now: number,
): boolean {
  const isInTime = lead === 0 || (at > now && applicationEndsAt > now);
  return isInTime && at <= applicationEndsAt && createdAt <= at - lead;
}
