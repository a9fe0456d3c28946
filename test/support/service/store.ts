import { EventEmitter, once } from "node:events";
import type { ApplicationStore } from "../../../src/store/port/applications.js";
import type { EventStore } from "../../../src/store/port/events.js";
import type { SessionStore } from "../../../src/store/port/sessions.js";
import type { Store } from "../../../src/store/port/store.js";

interface StoreOverrides {
  readonly applications?: Partial<ApplicationStore>;
  readonly sessions?: Partial<SessionStore>;
  readonly events?: Partial<EventStore>;
  readonly change?: Store["change"];
  readonly ping?: Store["ping"];
}

/** Wraps a store and replaces some of its methods. */
export function overrideStore(
  store: Store,
  { applications, sessions, events, change, ping }: StoreOverrides,
): Store {
  return {
    id: store.id,
    applications: { ...store.applications, ...applications },
    sessions: { ...store.sessions, ...sessions },
    change: change ?? store.change,
    changes: store.changes,
    events: { ...store.events, ...events },
    responses: store.responses,
    transfer: store.transfer,
    now: () => store.now(),
    ping: ping ?? (() => store.ping()),
    close: () => store.close(),
  };
}

/** A store whose reads of applications can be paused. */
export interface PausableStore extends Store {
  pauseReads(): void;
  resumeReads(): void;
  /** Resolves when the next read is paused. */
  nextPausedRead(): Promise<void>;
}

/** Wraps a store. Pauses reads by id, which authentication uses, or lists. */
export function createPausableStore(store: Store, method: "find" | "list" = "find"): PausableStore {
  const events = new EventEmitter().setMaxListeners(0);
  let isPaused = false;
  const waitWhilePaused = async () => {
    if (isPaused) {
      const resumed = once(events, "resume");
      events.emit("pausedRead");
      await resumed;
    }
  };
  const { applications } = store;
  const pausable: Pick<ApplicationStore, "find" | "list"> = {
    find: (id) => waitWhilePaused().then(() => applications.find(id)),
    list: (query, signal) => waitWhilePaused().then(() => applications.list(query, signal)),
  };
  return {
    ...overrideStore(store, { applications: { [method]: pausable[method] } }),
    pauseReads() {
      isPaused = true;
    },
    resumeReads() {
      isPaused = false;
      events.emit("resume");
    },
    nextPausedRead: async () => void (await once(events, "pausedRead")),
  };
}
