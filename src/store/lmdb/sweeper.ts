import { idFromBytes } from "../../lib/uuid.js";
import { type ApplicationRecord, expiredRetention, type SessionRecord } from "../port/records.js";
import { isRevoked, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, EndIndex, ForeignKeyIndex } from "./application-index.js";
import type { ChangeLog } from "./changes.js";
import type { Environment } from "./environment.js";
import { after, idAtEnd, momentBytes, momentKey, nothing } from "./keys.js";
import { isAlive } from "./liveness.js";
import type { Records } from "./records.js";
import type { SessionIndex } from "./session-index.js";
import type { Tables } from "./tables.js";

/** Rows removed in one transaction: few enough that requests need not wait long behind it. */
const batchSize = 200;

/** How many such transactions a sweep spends on each thing that nobody waits for. */
const mostBatches = 20;

/** What grows old. */
interface Prunable {
  needsPruning(): boolean;
  prune(limit: number): void;
}

export interface SweeperOptions {
  readonly environment: Environment;
  readonly applications: Records<ApplicationRecord>;
  readonly sessions: Records<SessionRecord>;
  readonly index: ApplicationIndex;
  readonly ends: EndIndex;
  readonly foreignKeys: ForeignKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly log: ChangeLog;
  /** What loses its oldest entries by itself. */
  readonly prunable: readonly Prunable[];
  readonly clock: Clock;
  /** Milliseconds between sweeps: an expiry is told as late as that. */
  readonly interval: number;
}

/**
 * Tells in the log, every so often, what has expired, removes it some time
 * later, removes what was revoked, and prunes what grows old. To those who
 * read records it only saves space, since all that is judged on read; so a
 * sweep that fails is left to the next one. Several processes may sweep: each
 * does what it finds to be done within its transaction.
 */
export function startSweeper(options: SweeperOptions) {
  const { environment, applications, sessions, index, ends, foreignKeys, sessionIndex } = options;
  const { log, prunable, clock, interval } = options;
  const { read, tables, reserve } = environment;
  let stopped = false;
  let sweeping: Promise<void> | undefined;
  let expiredCount = 0;

  function write<T>(work: () => T): Promise<T> {
    return environment.write(work, "upkeep");
  }

  function due(table: Tables["sessionExpirations"], limit = batchSize): Buffer[] {
    return [...table.getKeys({ end: after(momentBytes(clock())), limit })];
  }

  /** Answers how many there were. */
  function endSessions(): number {
    let ended = 0;
    // Where space is short, to keep them would take more of it.
    const keepsEnded = !reserve.isAllThatIsLeft();
    for (const key of due(tables.sessionExpirations)) {
      const id = idFromBytes(idAtEnd(key));
      const record = sessions.find(id);
      if (record) {
        const { tenantId, applicationId, expiresAt: at } = record;
        log.append(tenantId, { kind: "expired", applicationId, sessionId: id, at });
        sessionIndex.expire(record);
        if (keepsEnded) {
          tables.expiredSessions.put(momentKey(clock() + expiredRetention, id), nothing);
        } else {
          removeSession(id);
        }
        ended++;
      }
      tables.sessionExpirations.remove(key);
    }
    return ended;
  }

  function endApplications(): void {
    for (const key of due(tables.applicationExpirations)) {
      const id = idFromBytes(idAtEnd(key));
      const record = applications.find(id);
      if (record) {
        const { tenantId, expiresAt: at = clock() } = record;
        log.append(tenantId, { kind: "expired", applicationId: id, at });
        tables.expiredApplications.put(momentKey(clock() + expiredRetention, id), nothing);
        index.remove(record);
      }
      tables.applicationExpirations.remove(key);
    }
  }

  function removeEndedSessions(): void {
    for (const key of due(tables.expiredSessions)) {
      const id = idFromBytes(idAtEnd(key));
      // An import may have put another in its place.
      if (!isAlive(sessions.find(id), clock())) {
        removeSession(id);
      }
      tables.expiredSessions.remove(key);
    }
  }

  function removeSession(id: string): void {
    const record = sessions.find(id);
    if (record) {
      sessionIndex.remove(record);
      sessions.remove(id);
    }
  }

  function removeEndedApplications(): void {
    for (const key of due(tables.expiredApplications)) {
      const id = idFromBytes(idAtEnd(key));
      const record = applications.find(id);
      if (!isAlive(record, clock())) {
        ends.move(record, undefined);
        foreignKeys.move(record, undefined);
        sessionIndex.sweepLater(id);
        applications.remove(id);
      }
      tables.expiredApplications.remove(key);
    }
  }

  /** Goes on with the sessions that one application opened or authorized; those that are not revoked stay. */
  function removeRevoked(): void {
    const { sessionSweeps, sessionsByApplication } = tables;
    for (const { key, value } of [...sessionSweeps.getRange({ limit: 1 })]) {
      const range = { start: value, exclusiveStart: true, end: after(key), limit: batchSize };
      const owned = [...sessionsByApplication.getKeys(range)];
      for (const id of owned.map((each) => idFromBytes(idAtEnd(each)))) {
        const session = sessions.find(id);
        if (session && isRevoked(withApplications(session, applications.find))) {
          removeSession(id);
        }
      }
      const last = owned[batchSize - 1];
      if (last) {
        sessionSweeps.put(key, last);
      } else {
        sessionSweeps.remove(key);
      }
    }
  }

  async function repeat<T>(
    table: Tables["sessionExpirations"],
    work: () => T,
    onDone: (done: T) => void = () => {},
  ): Promise<void> {
    while (!stopped && read(() => due(table, 1).length > 0)) {
      onDone(await write(work));
    }
  }

  async function sweep(): Promise<void> {
    const { sessionExpirations, applicationExpirations, expiredSessions, expiredApplications } =
      tables;
    await repeat(sessionExpirations, endSessions, (ended) => {
      expiredCount += ended;
    });
    await repeat(applicationExpirations, endApplications);
    await repeat(expiredSessions, removeEndedSessions);
    await repeat(expiredApplications, removeEndedApplications);
    await repeatSome(() => tables.sessionSweeps.getKeysCount({ limit: 1 }) > 0, removeRevoked);
    for (const { needsPruning, prune } of prunable) {
      await repeatSome(needsPruning, () => prune(batchSize));
    }
    await reserve.restore();
  }

  /** Does of what can wait only so much: the next expiry cannot. */
  async function repeatSome(isToDo: () => boolean, work: () => void): Promise<void> {
    for (let done = 0; done < mostBatches && !stopped && read(isToDo); done++) {
      await write(work);
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
    /** How many sessions this process has ended since it was last asked. */
    takeExpired(): number {
      const taken = expiredCount;
      expiredCount = 0;
      return taken;
    },

    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
