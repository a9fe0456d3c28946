import { type Change, changeRetention } from "../changes.js";
import type { Clock } from "../store.js";
import type { Environment } from "./environment.js";
import { createNumberedLog, type LogEntry, type NumberedLog } from "./numbered-log.js";

/** What happened to applications and sessions. */
export interface ChangeLog extends NumberedLog<LoggedChange> {
  /** Adds a change in the transaction that makes it, so that it is told if and only if it took effect. */
  append(tenantId: string, change: Change): void;
}

/** The moment of a change may be that of an expiry long ago; when it was logged tells how long it is kept. */
export interface LoggedChange extends LogEntry {
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
