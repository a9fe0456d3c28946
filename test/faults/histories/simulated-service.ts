import { setImmediate as nextTurn } from "node:timers/promises";
import { type Api, ApiFailure, type Key, type KeyWithHeaders } from "../../support/api/api.js";
import type { Endpoint } from "../support/call-recorder.js";

/** The mistakes that the simulated service can make. */
export const bugs = [
  "acknowledges a change before it is durable",
  "reads from a cache",
  "reads a nonce and then spends it",
  "loses an event",
  "repeats an event",
  "records an event without a change",
  "records events out of order",
  "lists events before the last ones arrive",
  "applies an update again after its acknowledgement",
  "ignores the Idempotency-Key",
  "checks the version and then writes",
  "keeps the version of a regenerated key",
  "accepts a replaced key",
  "makes a change that it refuses",
  "shows a change that it rolls back",
  "revives a deleted session",
  "forgets to revoke sessions",
] as const;

export type Bug = (typeof bugs)[number];

interface StoredApplication {
  readonly id: string;
  readonly type: string;
  readonly formerKeys: string[];
  name: string;
  status: string;
  key: string;
  version: number;
  epoch: number;
}

interface StoredSession {
  readonly id: string;
  readonly sessionKey: string;
  readonly nonce: string;
  readonly opener: string;
  readonly openedIn: number;
  authorizer?: string;
  authorizedIn?: number;
}

interface StoredEvent {
  readonly kind: string;
  readonly requestId: string;
  readonly target: string;
}

const createState = () => ({
  applications: new Map<string, StoredApplication>(),
  sessions: new Map<string, StoredSession>(),
  events: [] as StoredEvent[],
  replies: new Map<string, object>(),
});

export const simulatedRoot = "root";

interface SimulatedService {
  readonly endpoints: readonly Endpoint[];
  /** Crashes and restarts all instances: calls without a response are lost. */
  crash(): void;
}

/** Two instances of a service in memory that keeps the guarantees, or all but one. */
export function createSimulatedService(random: () => number, bug?: Bug): SimulatedService {
  let state = createState();
  let durable = structuredClone(state);
  let crashes = 0;
  let count = 0;
  /** What the cached instance last read. */
  const cached = new Map<string, StoredApplication | undefined>();

  const happens = (name: Bug, chance = 0.3) => bug === name && random() < chance;
  const fail = (reason: string, currentVersion?: number): never => {
    const facts = {
      violations: [],
      missingPermissions: [],
      currentVersion: String(currentVersion),
    };
    throw new ApiFailure(reason, 400, reason, {}, "", false, facts);
  };
  const newId = (kind: string) => `${kind}${++count}`;

  async function pause(turns = 4): Promise<void> {
    for (let left = Math.ceil(random() * turns); left > 0; left--) {
      await nextTurn();
    }
  }

  /** Runs a call between its request and its response, which a crash loses. */
  async function call<T>(work: () => T | Promise<T>): Promise<T> {
    const before = crashes;
    const travel = async () => {
      await pause();
      if (crashes !== before || random() < 0.01) {
        throw new Error("The connection was closed.");
      }
    };
    await travel();
    const result = await work();
    await travel();
    return result;
  }

  /** Makes a change once per Idempotency-Key. */
  function changeOnce<T extends object>(key: Key, work: (requestId: string) => T | Promise<T>) {
    const { headers } = key as KeyWithHeaders;
    const { "idempotency-key": idempotencyKey, "x-request-id": requestId = "" } = headers;
    return call(async () => {
      const reply = idempotencyKey && state.replies.get(idempotencyKey);
      if (reply && !happens("ignores the Idempotency-Key", 1)) {
        return reply as T;
      }
      const result = await work(requestId);
      if (idempotencyKey) {
        state.replies.set(idempotencyKey, result);
      }
      if (!happens("acknowledges a change before it is durable", 0.8)) {
        durable = structuredClone(state);
      }
      return result;
    });
  }

  function record(kind: string, target: string, requestId: string): void {
    const event = { kind, target, requestId };
    if (happens("loses an event", 0.1)) {
      return;
    }
    const isLate = happens("records events out of order");
    state.events.splice(isLate ? -1 : state.events.length, 0, event);
    if (happens("repeats an event", 0.1)) {
      state.events.push(event);
    }
  }

  const show = ({ id, name, type, status, version }: StoredApplication) => ({
    id,
    name,
    type,
    status,
    version: String(version),
  });

  const findApplication = (id: string) =>
    state.applications.get(id) ?? fail("application_not_found");

  interface Target {
    readonly id: string;
    readonly ifMatch?: string | undefined;
  }

  function changeApplication(
    key: Key,
    { id, ifMatch }: Target,
    kind: string,
    apply: (application: StoredApplication) => void,
  ) {
    return changeOnce(key, async (requestId) => {
      const application = findApplication(id);
      const change = () => {
        apply(application);
        const keepsVersion =
          kind === "key.regenerated" && happens("keeps the version of a regenerated key");
        application.version += keepsVersion ? 0 : 1;
      };
      if (ifMatch !== undefined && ifMatch !== String(application.version)) {
        if (happens("makes a change that it refuses")) {
          change();
          record(kind, id, requestId);
        }
        if (happens("records an event without a change")) {
          record(kind, id, requestId);
        }
        fail("version_mismatch", application.version);
      }
      if (happens("checks the version and then writes", 1)) {
        await pause();
        findApplication(id);
      }
      if (happens("shows a change that it rolls back", 0.1)) {
        const before = structuredClone(application);
        change();
        await pause(20);
        Object.assign(application, before);
        fail("store_unavailable");
      }
      change();
      record(kind, id, requestId);
      if (kind === "application.updated" && happens(bugs[8], 0.2)) {
        void pause(40).then(change);
      }
      return { ...show(application), ...(kind === "key.regenerated" && { key: application.key }) };
    });
  }

  const keepsOpener = ({ opener, openedIn }: StoredSession) =>
    state.applications.get(opener)?.epoch === openedIn;
  const keepsAuthorizer = ({ authorizer, authorizedIn }: StoredSession) =>
    authorizer === undefined || state.applications.get(authorizer)?.epoch === authorizedIn;
  const isValid = (session: StoredSession) => keepsOpener(session) && keepsAuthorizer(session);

  function findSession(isWanted: (session: StoredSession) => boolean, reason: string) {
    const session = [...state.sessions.values()].find(isWanted);
    return session && isValid(session) ? session : fail(reason);
  }

  function authenticate(key: Key, isCached = false): StoredApplication {
    const secret = (key as KeyWithHeaders).key;
    const stored = [...state.applications.values()].find(
      ({ key, formerKeys }) =>
        key === secret || (formerKeys.includes(secret) && happens("accepts a replaced key")),
    );
    const application = readThrough(stored, isCached);
    return application?.status === "enabled" ? application : fail("unauthenticated");
  }

  /** Returns an earlier state now and then. */
  function readThrough<T extends StoredApplication | undefined>(stored: T, isCached: boolean): T {
    if (!stored || !isCached) {
      return stored;
    }
    const earlier = cached.get(stored.id);
    if (earlier && happens("reads from a cache")) {
      return earlier as T;
    }
    cached.set(stored.id, structuredClone(stored));
    return stored;
  }

  function whoAmI(key: Key, isCached: boolean) {
    const secret = (key as KeyWithHeaders).key;
    if (!secret.startsWith("session")) {
      return authenticate(key, isCached);
    }
    const session = findSession(({ sessionKey }) => sessionKey === secret, "unauthenticated");
    const { opener, authorizer } = session;
    for (const id of [opener, authorizer ?? opener]) {
      if (state.applications.get(id)?.status !== "enabled") {
        fail("unauthenticated");
      }
    }
    return { authorized: authorizer !== undefined };
  }

  async function authorizeSession(key: Key, nonce: string, requestId: string): Promise<object> {
    const { id: authorizer, epoch: authorizedIn } = authenticate(key);
    const session = findSession((session) => session.nonce === nonce, "nonce_not_found");
    if (session.authorizer !== undefined) {
      fail("nonce_used");
    }
    if (happens("reads a nonce and then spends it", 1) || happens("revives a deleted session", 1)) {
      await pause();
    }
    const wasSpent = state.sessions.get(session.id)?.authorizer !== undefined;
    if (bug === "revives a deleted session" && wasSpent) {
      fail("nonce_used");
    }
    state.sessions.set(session.id, { ...session, authorizer, authorizedIn });
    record("session.authorized", session.id, requestId);
    return { sessionId: session.id };
  }

  const createApi = (isCached: boolean) => ({
    createApplication: (key: Key, { name, type }: { name: string; type: string }) =>
      changeOnce(key, (requestId) => {
        const id = newId("application");
        const status = "enabled";
        const created = { id, name, type, status, key: newId("key"), version: 1, epoch: 0 };
        state.applications.set(id, { ...created, formerKeys: [] });
        record("application.created", id, requestId);
        return { ...show(findApplication(id)), key: created.key };
      }),
    getApplication: (_: Key, { id }: Target) =>
      call(() => show(readThrough(findApplication(id), isCached))),
    updateApplication: (key: Key, request: Target & { name: string }) =>
      changeApplication(key, request, "application.updated", (application) => {
        application.name = request.name;
      }),
    regenerateApplicationKey: (key: Key, request: Target) =>
      changeApplication(key, request, "key.regenerated", (application) => {
        application.formerKeys.push(application.key);
        application.key = newId("key");
      }),
    disableApplication: (key: Key, request: Target) =>
      changeApplication(key, request, "application.disabled", (application) => {
        application.status = "disabled";
      }),
    enableApplication: (key: Key, request: Target) =>
      changeApplication(key, request, "application.enabled", (application) => {
        application.status = "enabled";
      }),
    deleteApplication: (key: Key, { id }: Target) =>
      changeOnce(key, (requestId) => {
        findApplication(id);
        state.applications.delete(id);
        record("application.deleted", id, requestId);
        return {};
      }),
    revokeAllSessions: async (key: Key, request: Target) => {
      await changeApplication(key, request, "application.sessions_revoked", (application) => {
        application.epoch += happens("forgets to revoke sessions") ? 0 : 1;
      });
      return {};
    },
    createSession: (key: Key) =>
      changeOnce(key, () => {
        const { id: opener, epoch: openedIn } = authenticate(key);
        const [id, sessionKey, nonce] = [newId("id"), newId("session"), newId("nonce")];
        state.sessions.set(id, { id, sessionKey, nonce, opener, openedIn });
        return { id, sessionKey, nonce };
      }),
    authorizeSession: (key: Key, { nonce }: { nonce: string }) =>
      changeOnce(key, (requestId) => authorizeSession(key, nonce, requestId)),
    getSession: (_: Key, { id: wanted }: Target) =>
      call(() => {
        const { authorizer } = findSession(({ id }) => id === wanted, "session_not_found");
        return { state: authorizer === undefined ? "unauthorized" : "authorized" };
      }),
    deleteSession: (key: Key, { id: wanted }: Target) =>
      changeOnce(key, (requestId) => {
        const { id } = findSession(({ id }) => id === wanted, "session_not_found");
        state.sessions.delete(id);
        record("session.deleted", id, requestId);
        return {};
      }),
    whoAmI: (key: Key) => call(() => (key === simulatedRoot ? {} : whoAmI(key, isCached))),
    listEvents: (_: Key, { target: wanted }: { target: string }) =>
      call(() => {
        const { events } = state;
        const isLate = happens("lists events before the last ones arrive");
        const listed = isLate ? events.slice(0, -3) : events;
        return { data: listed.filter(({ target }) => target === wanted).toReversed() };
      }),
  });

  return {
    endpoints: ["first", "second"].map((instance, index) => ({
      instance,
      protocol: "simulated",
      api: createApi(index === 1) as unknown as Api,
    })),

    crash() {
      crashes++;
      state = structuredClone(durable);
    },
  };
}
