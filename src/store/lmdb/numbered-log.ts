import type { Database } from "lmdb";
import { createPageBudget } from "../port/page-budget.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import { numberKey, numberOf } from "./keys.js";

/**
 * What happened, in the order of the commits of all processes. Entries are
 * numbered from one without gaps; the oldest ones go, the newest one never
 * does, so that no number is given twice.
 */
export interface NumberedLog<E extends LogEntry> {
  /** The number of the oldest entry that is kept, or one more than the newest where there is none. */
  first(): number;

  /** The number of the newest entry, or zero. */
  last(): number;

  /** The entries after a number, in their order: so many at most, and fewer where they are large. */
  after(number: number, limit: number): E[];

  /** Whether an entry has been kept for as long as it is to be: others of its time may be gone. */
  isOld(entry: E): boolean;

  /** Whether there is something to prune. */
  needsPruning(): boolean;

  /** Removes some of the oldest entries, as far as they are old. */
  prune(limit: number): void;
}

export interface LogEntry {
  readonly number: number;
  readonly tenantId: string;
  /** When it was written. */
  readonly loggedAt: number;
}

type Row = string | Buffer;

export interface LogOptions<V extends Row, E extends LogEntry> {
  readonly table: Database<V, Buffer>;
  readonly open: (number: number, row: V) => E;
  /** Milliseconds for which entries are kept. */
  readonly retention: number;
  /** Removes what else was written with an entry. */
  readonly onPrune?: (entry: E) => void;
}

export function createNumberedLog<V extends Row, E extends LogEntry>(
  { attempt }: Environment,
  clock: Clock,
  { table, open, retention, onPrune }: LogOptions<V, E>,
) {
  /** The newest number, as an attempt to write knows it. */
  let newest = { attempt: 0, number: 0 };

  function last(): number {
    for (const key of table.getKeys({ reverse: true, limit: 1 })) {
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

  function after(number: number, limit: number): E[] {
    const room = createPageBudget();
    const entries: E[] = [];
    for (const { key, value } of table.getRange({ start: numberKey(number + 1), limit })) {
      if (!room.tryAdd(value.length)) {
        break;
      }
      entries.push(open(numberOf(key), value));
    }
    return entries;
  }

  /** One that was written when the clock was far ahead must not keep all that came after it. */
  function isOld({ loggedAt }: E): boolean {
    return Math.abs(clock() - loggedAt) > retention;
  }

  /** The oldest entries that may be removed. */
  function prunable(limit: number): E[] {
    const newest = last();
    const entries = after(0, limit);
    const kept = entries.findIndex((entry) => !isOld(entry) || entry.number === newest);
    return kept < 0 ? entries : entries.slice(0, kept);
  }

  const log: NumberedLog<E> = {
    first() {
      for (const key of table.getKeys({ limit: 1 })) {
        return numberOf(key);
      }
      return 1;
    },

    last,
    after,
    isOld,
    needsPruning: () => prunable(1).length > 0,

    prune(limit) {
      for (const entry of prunable(limit)) {
        table.remove(numberKey(entry.number));
        onPrune?.(entry);
      }
    },
  };

  return {
    ...log,

    /** Adds a row inside `write`, and answers its number. */
    add(row: V): number {
      const number = nextNumber();
      table.put(numberKey(number), row);
      return number;
    },
  };
}
