import { isLive, isRevoked, withParents } from "../core/liveness.js";
import type { RecordReader } from "../core/record-reader.js";
import { createSessionLists } from "../core/session-lists.js";
import type { SessionWithApplication } from "../port/records.js";
import type { SessionStore } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import type { RecordStore } from "./record-store.js";

export function createSessionStore(
  { read }: Environment,
  { tables }: RecordStore,
  reader: RecordReader,
  clock: Clock,
  drainExpiredCount: SessionStore["drainExpiredCount"],
): SessionStore {
  /** Finds a stored session, live or not. */
  function findStored(id: string): SessionWithApplication | undefined {
    const session = tables.session.find(id);
    return session && withParents("session", session, tables.application.find);
  }

  function findLive(id: string): SessionWithApplication | undefined {
    const found = findStored(id);
    return isLive("session", found, clock()) ? found : undefined;
  }

  return {
    find(id) {
      return read(() => findLive(id));
    },

    findMany(ids) {
      return read(() => ids.map(findLive));
    },

    findExpired(id) {
      return read(() => {
        const found = findStored(id);
        return isRevoked("session", found) || isLive("session", found, clock()) ? undefined : found;
      });
    },

    ...createSessionLists(reader),

    drainExpiredCount,
  };
}
