import type { Store } from "../../store/port/store.js";
import { counter, type Family } from "./families.js";

export interface SessionMetrics {
  /** Wraps the store to count opened and authorized sessions. */
  observe(store: Store): Store;
  /** Adds the sessions that expired since the last call. Never fails: a failed count is included in the next one. */
  countExpired(): Promise<void>;
  families(): Family[];
}

export function createSessionMetrics(): SessionMetrics {
  const counts = { opened: 0, authorized: 0, expired: 0 };
  let observed: Store | undefined;

  return {
    observe(store) {
      observed = store;
      return {
        ...store,
        sessions: {
          ...store.sessions,
          async create(session, audit) {
            const created = await store.sessions.create(session, audit);
            counts.opened += created ? 1 : 0;
            return created;
          },
          async authorize(grant, audit) {
            const outcome = await store.sessions.authorize(grant, audit);
            counts.authorized += outcome === "authorized" ? 1 : 0;
            return outcome;
          },
        },
      };
    },

    async countExpired() {
      try {
        const expired = (await observed?.sessions.takeExpired()) ?? 0;
        counts.expired += expired;
      } catch {}
    },

    families: () => [
      counter(
        "latchkey_sessions_total",
        "Sessions by state: opened, authorized or expired. Deleted and revoked sessions do not expire.",
        Object.entries(counts).map(([state, value]) => ({ labels: { state }, value })),
      ),
    ],
  };
}
