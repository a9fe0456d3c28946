import { setTimeout as delay } from "node:timers/promises";
import { type Api, keyOf } from "../../support/api/api.js";
import type { CallRecorder, Endpoint, Outcome } from "./call-recorder.js";
import type { ClusterKeys } from "./cluster.js";

/** The state of an application according to acknowledged writes. Only one worker writes to it. */
export interface ExpectedApplication {
  readonly id: string;
  /** The valid key. Absent while a change of it is pending or has no response. */
  key: string | undefined;
  /** The number of sent changes of the key, including deletion. */
  keyChanges: number;
  /** The number in the last acknowledged name and in the last sent name. */
  acknowledgedName: number;
  sentName: number;
  isDeleting: boolean;
  isDeleted: boolean;
}

export interface ExpectedSession {
  readonly id: string;
  readonly key: string;
  isAuthorized: boolean;
}

/** The state according to all acknowledged writes. */
export interface ExpectedState {
  readonly applications: ExpectedApplication[];
  readonly sessions: ExpectedSession[];
  /** Keys that were replaced, deleted or disabled, or whose sessions were revoked. */
  readonly revokedKeys: string[];
}

export const createExpectedState = (): ExpectedState => ({
  applications: [],
  sessions: [],
  revokedKeys: [],
});

const formatName = (number: number) => `shop ${number}`;
export const parseName = (name: string) => Number(name.split(" ")[1]);

interface LoadOptions {
  readonly recorder: CallRecorder;
  readonly expected: ExpectedState;
  readonly endpoints: readonly Endpoint[];
  readonly keys: ClusterKeys;
  /** Called first for each revoked key, with the time of the acknowledgement. */
  onRevoked(method: string, key: string, acknowledgedAt: number): void;
}

interface Load {
  /** Stops after the pending calls. */
  stop(): Promise<void>;
}

/** How long a worker waits after a round and after a failed call, in milliseconds. */
const pause = 100;

/** Workers create, change and revoke their own applications and sessions, over all endpoints, until stopped. */
export function startClusterLoad(options: LoadOptions, workers: number): Load {
  const { recorder, expected, endpoints, keys, onRevoked } = options;
  const { root, opener, granter } = keys;
  let isStopped = false;
  let count = 0;

  async function call<T>(operation: string, send: (api: Api) => Promise<T>): Promise<Outcome<T>> {
    const endpoint = endpoints[count++ % endpoints.length] as Endpoint;
    const outcome = await recorder.call(endpoint, operation, send);
    if (outcome.result !== "done") {
      await delay(pause);
    }
    return outcome;
  }

  /** Repeats a change until it is acknowledged. A repeated change may report that it was already made. */
  async function retryUntilDone<T>(
    operation: string,
    send: (api: Api) => Promise<T>,
    alreadyDone?: string,
  ): Promise<Outcome<T> | undefined> {
    for (let isRetry = false; !isStopped; isRetry = true) {
      const outcome = await call(isRetry ? `${operation} again` : operation, send);
      if (outcome.result === "done" || (isRetry && outcome.result === alreadyDone)) {
        return outcome;
      }
    }
    return undefined;
  }

  async function create(): Promise<ExpectedApplication | undefined> {
    const request = { name: formatName(0), type: "private", permissions: ["application:read"] };
    const { value } = await call("create", (api) => api.createApplication(root, request));
    if (!value) {
      return undefined;
    }
    const application = {
      id: value.id,
      key: keyOf(value),
      keyChanges: 0,
      acknowledgedName: 0,
      sentName: 0,
      isDeleting: false,
      isDeleted: false,
    };
    expected.applications.push(application);
    return application;
  }

  async function rename(application: ExpectedApplication): Promise<void> {
    const number = ++application.sentName;
    const { id } = application;
    const request = { id, name: formatName(number), permissions: ["application:read"] };
    const { result } = await call("update", (api) => api.updateApplication(root, request));
    if (result === "done") {
      application.acknowledgedName = number;
    }
  }

  function recordRevocation(method: string, key: string, { endedAt }: Outcome): void {
    onRevoked(method, key, endedAt);
    expected.revokedKeys.push(key);
  }

  /** Removes the key from the expected state, so that no probe expects it to work. */
  function readNewKey(application: ExpectedApplication): string {
    const key = application.key as string;
    application.key = undefined;
    application.keyChanges++;
    return key;
  }

  /** Replaces the key. The acknowledgement revokes all earlier keys, also those in lost responses. */
  async function regenerate(application: ExpectedApplication): Promise<void> {
    const { id } = application;
    const key = readNewKey(application);
    const outcome = await retryUntilDone("regenerate", (api) =>
      api.regenerateApplicationKey(root, { id }),
    );
    if (outcome?.value) {
      application.key = keyOf(outcome.value);
      recordRevocation("regenerate", key, outcome);
    }
  }

  async function remove(application: ExpectedApplication): Promise<void> {
    const { id } = application;
    const key = readNewKey(application);
    application.isDeleting = true;
    const outcome = await retryUntilDone(
      "delete",
      (api) => api.deleteApplication(root, { id }),
      "application_not_found",
    );
    if (outcome) {
      application.isDeleted = true;
      recordRevocation("delete", key, outcome);
    }
  }

  async function disable(application: ExpectedApplication): Promise<void> {
    const { id } = application;
    const key = readNewKey(application);
    const outcome = await retryUntilDone("disable", (api) => api.disableApplication(root, { id }));
    if (outcome) {
      recordRevocation("disable", key, outcome);
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
    const outcome = await retryUntilDone("revoke", (api) => api.revokeAllSessions(root, { id }));
    if (session && outcome) {
      recordRevocation("revoke-all", session.sessionKey, outcome);
    }
  }

  async function authorize(): Promise<void> {
    const { value } = await call("open", (api) => api.createSession(opener));
    if (!value) {
      return;
    }
    const { id, sessionKey, nonce } = value;
    const session: ExpectedSession = { id, key: sessionKey, isAuthorized: false };
    expected.sessions.push(session);
    const grant = { nonce, permissions: ["application:read"] };
    const { result } = await call("authorize", (api) => api.authorizeSession(granter, grant));
    session.isAuthorized = result === "done";
  }

  /** The last step of each round. Some applications remain. */
  const lastSteps = [remove, disable, revokeAll, undefined];

  async function work(): Promise<void> {
    for (let round = 0; !isStopped; round++) {
      const application = await create();
      if (application) {
        await rename(application);
        await regenerate(application);
        await rename(application);
        await authorize();
        await lastSteps[round % lastSteps.length]?.(application);
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
