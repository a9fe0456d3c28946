import type { Database } from "lmdb";
import { type Clock, createPageBudget } from "../port/store.js";
import type { Environment } from "./environment.js";
import { numberKey, numberOf } from "./row-keys.js";

/**
 * A log in the commit order of all processes. Entries are numbered from one
 * without gaps. Old entries are pruned, but never the newest, so that no number
 * is used twice.
 */
export interface NumberedLog<E extends LogEntry> {
  /** The number of the oldest stored entry, or 1 if there is none. */
  first(): number;

  /** The number of the newest entry, or zero. */
  last(): number;

  /** Up to `limit` entries after a number, in order. Fewer if they are large. */
  after(number: number, limit: number): E[];

  /** Whether an entry is past its retention. Others of the same age may be pruned. */
  isOld(entry: E): boolean;

  needsPruning(): boolean;

  /** Removes up to `limit` entries that are past their retention. */
  prune(limit: number): void;
}

export interface LogEntry {
  readonly number: number;
  readonly tenantId: string;
  readonly loggedAt: number;
}

type Row = string | Buffer;

interface LogOptions<V extends Row, E extends LogEntry> {
  readonly table: Database<V, Buffer>;
  readonly open: (number: number, row: V) => E;
  /** In milliseconds. */
  readonly retention: number;
  /** Removes the index rows of an entry. */
  readonly onPrune?: (entry: E) => void;
}

export function createNumberedLog<V extends Row, E extends LogEntry>(
  { attempt }: Environment,
  clock: Clock,
  { table, open, retention, onPrune }: LogOptions<V, E>,
) {
  /** The newest number, as cached by a write attempt. */
  let newest = { attempt: 0, number: 0 };

  function last(): number {
    for (const key of table.getKeys({ reverse: true, limit: 1 })) {
      return numberOf(key);
    }
    return 0;
  }

  /** Finding the newest entry takes longer than writing one, so writes of one attempt share the lookup. */
  function nextNumber(): number {
    const current = attempt();
    const number = (newest.attempt === current ? newest.number : last()) + 1;
    newest = { attempt: current, number };
    return number;
  }

  function after(number: number, limit: number): E[] {
    const budget = createPageBudget();
    const entries: E[] = [];
    for (const { key, value } of table.getRange({ start: numberKey(number + 1), limit })) {
      if (!budget.tryAdd(value.length)) {
        break;
      }
      entries.push(open(numberOf(key), value));
    }
    return entries;
  }

  /** An entry that was written while the clock was far ahead must not block pruning. */
  function isOld({ loggedAt }: E): boolean {
    return Math.abs(clock() - loggedAt) > retention;
  }

  function prunable(limit: number): E[] {
    const newest = last();
    const entries = after(0, limit);
    const firstKept = entries.findIndex((entry) => !isOld(entry) || entry.number === newest);
    return firstKept < 0 ? entries : entries.slice(0, firstKept);
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

    /** Adds a row inside `write`, and returns its number. */
    add(row: V): number {
      const number = nextNumber();
      table.put(numberKey(number), row);
      return number;
    },
  };
}
