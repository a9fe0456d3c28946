import { type Change, type ChangeFeed, changeRetention, largestBatch } from "../port/changes.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import { createLogFeed } from "./feed.js";
import { createNumberedLog, type LogEntry, type NumberedLog } from "./numbered-log.js";

/** What happened to applications and sessions. */
export interface ChangeLog extends NumberedLog<LoggedChange> {
  /** Adds a change in the transaction that makes it, so that it is told if and only if it took effect. */
  append(tenantId: string, change: Change): void;
}

/** The moment of a change may be that of an expiry long ago; when it was logged tells how long it is kept. */
interface LoggedChange extends LogEntry {
  readonly change: Change;
}

export function createChangeLog(environment: Environment, clock: Clock): ChangeLog {
  const { add, ...log } = createNumberedLog(environment, clock, {
    table: environment.tables.changes,
    retention: changeRetention,
    open(number, row: string): LoggedChange {
      const { tenantId, loggedAt, ...change } = JSON.parse(row);
      return { number, tenantId, loggedAt, change };
    },
  });

  return {
    ...log,

    append(tenantId, change) {
      add(JSON.stringify({ tenantId, ...change, loggedAt: clock() }));
    },
  };
}

export function createChangeFeed(environment: Environment, log: ChangeLog): ChangeFeed {
  const followLog = createLogFeed(environment, log, {
    largest: largestBatch,
    // Judged by age, so that it is the same whether they were pruned or not.
    continuesWith: (entry) => !log.isOld(entry),
    // Who missed some has to forget all, and gains nothing from those that are left.
    restart: log.last,
  });

  return {
    async *follow(options) {
      for await (const { entries, missed, position, completeUntil } of followLog(options)) {
        yield { changes: entries.map(({ change }) => change), missed, position, completeUntil };
      }
    },
  };
}
