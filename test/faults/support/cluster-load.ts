import { setTimeout as delay } from "node:timers/promises";
import { type Api, keyOf } from "../../support/api/api.js";
import type { ClusterKeys } from "./cluster.js";
import { type ClusterLedger, type Held, type HeldSession, nameFor } from "./cluster-ledger.js";
import type { Door, Outcome, Tally } from "./tally.js";

interface LoadOptions {
  readonly tally: Tally;
  readonly ledger: ClusterLedger;
  readonly doors: readonly Door[];
  readonly keys: ClusterKeys;
  /** Called first for each revoked key, with the time of the acknowledgement. */
  onEnd(kind: string, key: string, acknowledgedAt: number): void;
}

interface Load {
  /** Stops after the pending calls. */
  stop(): Promise<void>;
}

/** How long a worker waits after a round and after a failed call, in milliseconds. */
const pause = 50;

/** Workers create, change and revoke their own applications and sessions, over all endpoints, until stopped. */
export function startClusterLoad(options: LoadOptions, workers: number): Load {
  const { tally, ledger, doors, keys, onEnd } = options;
  const { root, opener, granter } = keys;
  let isStopped = false;
  let turn = 0;

  async function call<T>(what: string, make: (api: Api) => Promise<T>): Promise<Outcome<T>> {
    const outcome = await tally.call(doors[turn++ % doors.length] as Door, what, make);
    if (outcome.end !== "done") {
      await delay(pause);
    }
    return outcome;
  }

  async function create(): Promise<Held | undefined> {
    const request = { name: nameFor(0), type: "private", permissions: ["application:read"] };
    const { value } = await call("create", (api) => api.createApplication(root, request));
    if (!value) {
      return undefined;
    }
    const numbers = { keyChanges: 0, named: 0, sent: 0 };
    const held = { id: value.id, key: keyOf(value), ...numbers };
    const application = { ...held, isDeleting: false, isDeleted: false };
    ledger.applications.push(application);
    return application;
  }

  async function rename(application: Held): Promise<void> {
    const number = ++application.sent;
    const { id } = application;
    const name = nameFor(number);
    const request = { id, name, permissions: ["application:read"] };
    const { end } = await call("update", (api) => api.updateApplication(root, request));
    if (end === "done") {
      application.named = number;
    }
  }

  /** Repeats a change until it is acknowledged. A repeated change may report that it was already made. */
  async function insist<T>(
    what: string,
    make: (api: Api) => Promise<T>,
    madeBefore?: string,
  ): Promise<Outcome<T> | undefined> {
    for (let isRepeated = false; !isStopped; isRepeated = true) {
      const outcome = await call(isRepeated ? `${what} again` : what, make);
      if (outcome.end === "done" || (isRepeated && outcome.end === madeBefore)) {
        return outcome;
      }
    }
    return undefined;
  }

  function noteEnd(kind: string, key: string, { endedAt }: Outcome): void {
    onEnd(kind, key, endedAt);
    ledger.endedKeys.push(key);
  }

  /** Removes the key of an application from the ledger, so that no probe expects it to work. */
  function giveUpKey(application: Held): string {
    const key = application.key as string;
    application.key = undefined;
    application.keyChanges++;
    return key;
  }

  /** Replaces the key until that is acknowledged. Then all earlier keys are revoked, also those in lost responses. */
  async function regenerate(application: Held): Promise<void> {
    const { id } = application;
    const key = giveUpKey(application);
    const made = await insist("regenerate", (api) => api.regenerateApplicationKey(root, { id }));
    if (made?.value) {
      application.key = keyOf(made.value);
      noteEnd("regenerate", key, made);
    }
  }

  async function remove(application: Held): Promise<void> {
    const { id } = application;
    const key = giveUpKey(application);
    application.isDeleting = true;
    const notFound = "application_not_found";
    const made = await insist("delete", (api) => api.deleteApplication(root, { id }), notFound);
    if (made) {
      application.isDeleted = true;
      noteEnd("delete", key, made);
    }
  }

  async function disable(application: Held): Promise<void> {
    const { id } = application;
    const key = giveUpKey(application);
    const made = await insist("disable", (api) => api.disableApplication(root, { id }));
    if (made) {
      noteEnd("disable", key, made);
    }
  }

  /** Opens a session, then revokes all sessions of its application. */
  async function revokeAll(): Promise<void> {
    const request = { name: "page", type: "public", permissions: ["token:read"] };
    const { value: page } = await call("create", (api) => api.createApplication(root, request));
    if (!page) {
      return;
    }
    const { id } = page;
    const { value: session } = await call("open", (api) => api.createSession(keyOf(page)));
    const made = await insist("revoke", (api) => api.revokeAllSessions(root, { id }));
    if (session && made) {
      noteEnd("revoke-all", session.sessionKey, made);
    }
  }

  async function authorize(): Promise<void> {
    const { value } = await call("open", (api) => api.createSession(opener));
    if (!value) {
      return;
    }
    const { id, sessionKey, nonce } = value;
    const session: HeldSession = { id, key: sessionKey, isAuthorized: false };
    ledger.sessions.push(session);
    const grant = { nonce, permissions: ["application:read"] };
    const { end } = await call("authorize", (api) => api.authorizeSession(granter, grant));
    session.isAuthorized = end === "done";
  }

  /** Changes and deletes one application after the other. Some remain. */
  const endings = [remove, disable, revokeAll, undefined];

  async function work(): Promise<void> {
    for (let round = 0; !isStopped; round++) {
      const application = await create();
      if (application) {
        await rename(application);
        await regenerate(application);
        await rename(application);
        await authorize();
        await endings[round % endings.length]?.(application);
        await delay(pause);
      }
    }
  }

  const working = Promise.all(Array.from({ length: workers }, work));
  return {
    async stop() {
      isStopped = true;
      await working;
    },
  };
}
