import { type Change, type Clock, changeRetention } from "../store.js";
import type { Environment } from "./environment.js";
import { numberKey, numberOf } from "./keys.js";

/**
 * What happened to applications and sessions, in the order of the commits of
 * all processes. Entries are numbered from one without gaps; the oldest ones
 * go, the newest one never does, so that no number is given twice.
 */
export interface ChangeLog {
  /** Adds a change in the transaction that makes it, so that it is told if and only if it took effect. */
  append(tenantId: string, change: Change): void;

  /** The number of the newest entry, or zero. */
  last(): number;

  /** The entries after a number, in their order. */
  after(number: number, limit: number): LoggedChange[];

  /** Whether an entry is too old to be relied on: others of its time may be gone. */
  isOld(entry: LoggedChange): boolean;

  /** Whether there is something to prune. */
  needsPruning(): boolean;

  /** Removes the oldest entries, as far as they are old. */
  prune(limit: number): void;
}

export interface LoggedChange {
  readonly number: number;
  readonly tenantId: string;
  readonly change: Change;
  /** Unlike the moment of the change, which may be that of an expiry long ago, this one tells how long it is kept. */
  readonly loggedAt: number;
}

export function createChangeLog({ tables, attempt }: Environment, clock: Clock): ChangeLog {
  const { changes } = tables;
  /** The newest number, as an attempt to write knows it. */
  let newest = { attempt: 0, number: 0 };

  function last(): number {
    for (const key of changes.getKeys({ reverse: true, limit: 1 })) {
      return numberOf(key);
    }
    return 0;
  }

  /** To look for the newest entry takes longer than to write one: those that are written together look once. */
  function nextNumber(): number {
    const current = attempt();
    const number = (newest.attempt === current ? newest.number : last()) + 1;
    newest = { attempt: current, number };
    return number;
  }

  function after(number: number, limit: number): LoggedChange[] {
    const rows = changes.getRange({ start: numberKey(number + 1), limit });
    return Array.from(rows, ({ key, value }) => {
      const { tenantId, loggedAt, ...change } = JSON.parse(value);
      return { number: numberOf(key), tenantId, loggedAt, change };
    });
  }

  function isOld({ loggedAt }: LoggedChange): boolean {
    return clock() - loggedAt > changeRetention;
  }

  /** The oldest entries that may be removed. */
  function prunable(limit: number): LoggedChange[] {
    const newest = last();
    const entries = after(0, limit);
    const kept = entries.findIndex((entry) => !isOld(entry) || entry.number === newest);
    return kept < 0 ? entries : entries.slice(0, kept);
  }

  return {
    append(tenantId, change) {
      const row = { tenantId, ...change, loggedAt: clock() };
      changes.put(numberKey(nextNumber()), JSON.stringify(row));
    },

    last,
    after,
    isOld,
    needsPruning: () => prunable(1).length > 0,

    prune(limit) {
      for (const { number } of prunable(limit)) {
        changes.remove(numberKey(number));
      }
    },
  };
}
