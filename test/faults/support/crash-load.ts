import { type Api, ApiFailure, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";

/** The state of an application according to its responses. */
export interface ExpectedApplication {
  readonly id: string;
  name: string;
  /** Unknown if the response was lost. */
  key: string | undefined;
  /** Revoked keys. */
  readonly revokedKeys: string[];
  isDeleted: boolean;
  /** The number of changes by kind. */
  readonly changes: Record<string, number>;
  /** A request without a response, which may have taken effect. */
  pendingChange?: { readonly kind: string; readonly name?: string } | undefined;
}

/** The state of a session according to its responses. */
export interface ExpectedSession {
  readonly id: string;
  readonly nonce: string;
  /** Whether authorization was acknowledged. Without a response it may have succeeded too. */
  isAuthorized: boolean;
}

/** The state according to all acknowledged writes. */
export interface ExpectedState {
  readonly applications: ExpectedApplication[];
  readonly sessions: ExpectedSession[];
}

export function countChange(application: ExpectedApplication, kind: string): void {
  application.changes[kind] = (application.changes[kind] ?? 0) + 1;
}

/** The keys that the load uses. */
export interface LoadKeys {
  readonly manager: string;
  /** Creates sessions. */
  readonly page: string;
  /** Authorizes sessions. */
  readonly backend: string;
}

export const grants = { permissions: ["token:read"] };

const workers = 6;

/** Sends all kinds of writes until the service is killed, and records the acknowledged ones. */
export async function writeUntilDisconnected(
  url: string,
  keys: LoadKeys,
  expected: ExpectedState,
  random: () => number,
): Promise<void> {
  const api = createRestApi(url);
  const working = Array.from({ length: workers }, async () => {
    const owned: ExpectedApplication[] = [];
    try {
      for (;;) {
        await writeOnce(api, keys, expected, owned, random);
      }
    } catch (error) {
      // An error response is unexpected. A missing response is not.
      if (error instanceof ApiFailure) {
        throw error;
      }
    }
  });
  await Promise.all(working);
}

async function writeOnce(
  api: Api,
  keys: LoadKeys,
  expected: ExpectedState,
  owned: ExpectedApplication[],
  random: () => number,
): Promise<void> {
  const roll = random();
  const application = owned[Math.floor(random() * owned.length)];
  if (roll < 0.25) {
    await authorize(api, keys, expected);
  } else if (!application || roll < 0.5) {
    owned.push(await create(api, keys, expected));
  } else if (roll < 0.7) {
    await update(api, keys, application);
  } else if (roll < 0.85) {
    await regenerate(api, keys, application);
  } else {
    await remove(api, keys, application);
    owned.splice(owned.indexOf(application), 1);
  }
}

async function create(
  api: Api,
  { manager }: LoadKeys,
  expected: ExpectedState,
): Promise<ExpectedApplication> {
  const response = await api.createApplication(manager, { name: "0", type: "private", ...grants });
  const application: ExpectedApplication = {
    id: response.id,
    name: response.name,
    key: keyOf(response),
    revokedKeys: [],
    isDeleted: false,
    changes: { "application.created": 1 },
  };
  expected.applications.push(application);
  return application;
}

async function update(
  api: Api,
  { manager }: LoadKeys,
  application: ExpectedApplication,
): Promise<void> {
  const name = String(Number(application.name) + 1);
  application.pendingChange = { kind: "application.updated", name };
  await api.updateApplication(manager, { id: application.id, name, ...grants });
  application.name = name;
  completeChange(application);
}

async function regenerate(
  api: Api,
  { manager }: LoadKeys,
  application: ExpectedApplication,
): Promise<void> {
  application.pendingChange = { kind: "key.regenerated" };
  const response = await api.regenerateApplicationKey(manager, { id: application.id });
  application.revokedKeys.push(application.key as string);
  application.key = keyOf(response);
  completeChange(application);
}

async function remove(
  api: Api,
  { manager }: LoadKeys,
  application: ExpectedApplication,
): Promise<void> {
  application.pendingChange = { kind: "application.deleted" };
  await api.deleteApplication(manager, { id: application.id });
  application.isDeleted = true;
  completeChange(application);
}

function completeChange(application: ExpectedApplication): void {
  countChange(application, application.pendingChange?.kind ?? "");
  application.pendingChange = undefined;
}

async function authorize(
  api: Api,
  { page, backend }: LoadKeys,
  expected: ExpectedState,
): Promise<void> {
  const { id, nonce } = await api.createSession(page);
  const session = { id, nonce, isAuthorized: false };
  expected.sessions.push(session);
  await api.authorizeSession(backend, { nonce, ...grants });
  session.isAuthorized = true;
}
