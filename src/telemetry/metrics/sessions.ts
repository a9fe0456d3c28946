import type { Store } from "../../store/port/store.js";
import { counter, type Family } from "./families.js";

export interface SessionMetrics {
  /** The same store, with the sessions counted that are opened and authorized. */
  observe(store: Store): Store;
  /** Learns which have expired since the last time. It never fails: what the store cannot tell now, it tells later. */
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
          async create(session, trail) {
            const made = await store.sessions.create(session, trail);
            counts.opened += made ? 1 : 0;
            return made;
          },
          async authorize(grant, trail) {
            const outcome = await store.sessions.authorize(grant, trail);
            counts.authorized += outcome === "authorized" ? 1 : 0;
            return outcome;
          },
        },
      };
    },

    async countExpired() {
      try {
        const more = (await observed?.sessions.takeExpired()) ?? 0;
        counts.expired += more;
      } catch {}
    },

    families: () => [
      counter(
        "latchkey_sessions_total",
        "Sessions that were opened and authorized, and calls that were refused since their session had expired.",
        Object.entries(counts).map(([state, value]) => ({ labels: { state }, value })),
      ),
    ],
  };
}
