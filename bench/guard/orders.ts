import type { Made } from "../seed.js";

/** What the process that has a guard is asked to do. */
export type GuardOrder = RevokeOrder | SpendOrder;

/** Revoke keys, and see how long the guard lets them in. */
export interface RevokeOrder {
  readonly kind: "revoke";
  /** The service that the guard asks and watches. */
  readonly url: string;
  /** The service that is told to revoke, on the same data. */
  readonly revokeUrl: string;
  readonly checkingKey: string;
  readonly managementKey: string;
  /** Whose keys are revoked, one after another. */
  readonly callers: readonly Made[];
  /** Each revoke waits before for a random time of up to so many milliseconds. */
  readonly longestPause: number;
}

/** What was seen of one revoke. Times in milliseconds from the acknowledgement. */
export interface Revocation {
  /** How many checks that began after the acknowledgement were answered with yes. */
  readonly allowed: number;
  /** When the first check began that was refused; 0 where it was the very first. */
  readonly refusedFrom: number;
  /** When the answer of that check was there. */
  readonly refusedBy: number;
}

/** Check many times in one way, and see what that costs. */
export interface SpendOrder {
  readonly kind: "spend";
  readonly way: CheckWay;
  readonly url: string;
  readonly checkingKey: string;
  /** The keys that are checked, in turn. */
  readonly keys: readonly string[];
  readonly checks: number;
  /** The process of the service. */
  readonly servicePid: number;
}

/** How an answer is had: by a function that does nothing, or by a guard or the client. */
export type CheckWay = "nothing" | "guardFromCache" | "guardAsking" | "clientAsking";

/** Microseconds of CPU time for each check. */
export interface Spending {
  /** In the process that checks. */
  readonly own: number;
  /** In the process of the service. */
  readonly service: number;
}
