import { EventEmitter, once } from "node:events";
import type { ApplicationStore } from "../../../src/store/port/applications.js";
import type { EventStore } from "../../../src/store/port/events.js";
import type { SessionStore } from "../../../src/store/port/sessions.js";
import type { Store } from "../../../src/store/port/store.js";

interface StoreChanges {
  readonly applications?: Partial<ApplicationStore>;
  readonly sessions?: Partial<SessionStore>;
  readonly events?: Partial<EventStore>;
  readonly ping?: Store["ping"];
}

/** A store that does some things in another way. */
export function changed(
  store: Store,
  { applications, sessions, events, ping }: StoreChanges,
): Store {
  return {
    id: store.id,
    applications: { ...store.applications, ...applications },
    sessions: { ...store.sessions, ...sessions },
    changes: store.changes,
    events: { ...store.events, ...events },
    responses: store.responses,
    transfer: store.transfer,
    now: () => store.now(),
    ping: ping ?? (() => store.ping()),
    close: () => store.close(),
  };
}

/** A store that makes some reads of applications wait while its gate is shut. */
export interface GatedStore extends Store {
  shut(): void;
  open(): void;
  /** Resolves when the next read stands at the gate. */
  arrival(): Promise<void>;
}

/** Puts a gate before the reads by id, which authentication makes, or before lists. */
export function gated(store: Store, method: "find" | "list" = "find"): GatedStore {
  const events = new EventEmitter().setMaxListeners(0);
  let isShut = false;
  const pass = async () => {
    if (isShut) {
      const opened = once(events, "open");
      events.emit("arrival");
      await opened;
    }
  };
  const { applications } = store;
  const behindGate: Pick<ApplicationStore, "find" | "list"> = {
    find: (id) => pass().then(() => applications.find(id)),
    list: (query, signal) => pass().then(() => applications.list(query, signal)),
  };
  return {
    ...changed(store, { applications: { [method]: behindGate[method] } }),
    shut() {
      isShut = true;
    },
    open() {
      isShut = false;
      events.emit("open");
    },
    arrival: async () => void (await once(events, "arrival")),
  };
}
