import { type Change, type ChangeFeed, changeRetention, maxChangeBatch } from "../port/changes.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import { createLogFeed } from "./feed.js";
import { createNumberedLog, type LogEntry, type NumberedLog } from "./numbered-log.js";

/** The log of changes that invalidate cached credentials. */
export interface ChangeLog extends NumberedLog<LoggedChange> {
  /** Appends a change in the transaction that writes it. */
  append(tenantId: string, change: Change): void;
}

/** Retention counts from `loggedAt`: the change itself may be an expiry of long ago. */
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

export function createChangeFeed(environment: Environment, changeLog: ChangeLog): ChangeFeed {
  const followLog = createLogFeed(environment, changeLog, {
    maxBatchSize: maxChangeBatch,
    // By age, so that the result does not depend on whether entries were pruned.
    continuesWith: (entry) => !changeLog.isOld(entry),
    // A follower that missed changes drops its entire cache, so the remaining entries are of no use.
    restart: changeLog.last,
  });

  return {
    async *follow(options) {
      for await (const { entries, missed, position, completeUntil } of followLog(options)) {
        yield { changes: entries.map(({ change }) => change), missed, position, completeUntil };
      }
    },
  };
}
