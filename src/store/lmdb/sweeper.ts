import { idFromBytes } from "../../ids.js";
import {
  type ApplicationRecord,
  type Clock,
  expiredRetention,
  type SessionRecord,
} from "../store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { ChangeLog } from "./change-log.js";
import type { Environment, Tables } from "./environment.js";
import { after, idAtEnd, momentBytes, momentKey, nothing } from "./keys.js";
import type { Records } from "./records.js";

/** Rows removed in one transaction: few enough that requests need not wait long behind it. */
const batchSize = 200;

export interface SweeperOptions {
  readonly environment: Environment;
  readonly applications: Records<ApplicationRecord>;
  readonly sessions: Records<SessionRecord>;
  readonly index: ApplicationIndex;
  readonly log: ChangeLog;
  readonly clock: Clock;
  /** Milliseconds between sweeps: an expiry is told as late as that. */
  readonly interval: number;
}

/**
 * Tells in the log, every so often, what has expired, removes it some time
 * later, and prunes the log. To those who read records it only saves space,
 * since expiry is judged on read; so a sweep that fails is left to the next
 * one. Several processes may sweep: each does what it finds to be done within
 * its transaction.
 */
export function startSweeper(options: SweeperOptions) {
  const { environment, applications, sessions, index, log, clock, interval } = options;
  const { read, write, tables } = environment;
  let stopped = false;
  let sweeping: Promise<void> | undefined;

  function due(table: Tables["sessionEnds"], limit = batchSize): Buffer[] {
    return [...table.getKeys({ end: after(momentBytes(clock())), limit })];
  }

  function endSessions(): void {
    for (const key of due(tables.sessionEnds)) {
      const id = idFromBytes(idAtEnd(key));
      const record = sessions.find(id);
      if (record) {
        const { tenantId, applicationId, expiresAt: at } = record;
        log.append(tenantId, { kind: "expired", applicationId, sessionId: id, at });
        tables.endedSessions.put(momentKey(clock() + expiredRetention, id), nothing);
      }
      tables.sessionEnds.remove(key);
    }
  }

  function endApplications(): void {
    for (const key of due(tables.applicationEnds)) {
      const id = idFromBytes(idAtEnd(key));
      const record = applications.find(id);
      if (record) {
        const { tenantId, expiresAt: at = clock() } = record;
        log.append(tenantId, { kind: "expired", applicationId: id, at });
        tables.endedApplications.put(momentKey(clock() + expiredRetention, id), nothing);
        index.remove(record);
      }
      tables.applicationEnds.remove(key);
    }
  }

  function removeEnded(ended: Tables["endedSessions"], records: { remove(id: string): void }) {
    for (const key of due(ended)) {
      records.remove(idFromBytes(idAtEnd(key)));
      ended.remove(key);
    }
  }

  async function repeat(table: Tables["sessionEnds"], work: () => void): Promise<void> {
    while (!stopped && read(() => due(table, 1).length > 0)) {
      await write(work);
    }
  }

  async function sweep(): Promise<void> {
    const { sessionEnds, applicationEnds, endedSessions, endedApplications } = tables;
    await repeat(sessionEnds, endSessions);
    await repeat(applicationEnds, endApplications);
    await repeat(endedSessions, () => removeEnded(endedSessions, sessions));
    await repeat(endedApplications, () => removeEnded(endedApplications, applications));
    while (!stopped && read(log.needsPruning)) {
      await write(() => log.prune(batchSize));
    }
  }

  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch(() => {})
      .finally(() => {
        sweeping = undefined;
      });
  }, interval);
  timer.unref();

  return {
    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
