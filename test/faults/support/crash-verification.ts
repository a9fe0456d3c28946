import { expect } from "@jest/globals";
import { type Api, ApiFailure } from "../../support/api/api.js";
import {
  countChange,
  type ExpectedApplication,
  type ExpectedSession,
  grants,
  type LoadKeys,
} from "./crash-load.js";

/** Compares an application with its expected state, and resolves a pending change. */
export async function verifyApplication(
  api: Api,
  { manager }: LoadKeys,
  application: ExpectedApplication,
) {
  const found = await api.getApplication(manager, { id: application.id }).catch(orReason);
  const isKeyValid =
    application.key === undefined ? undefined : await isAccepted(api, application.key);
  resolvePendingChange(application, found, isKeyValid);

  expect(isReason(found) ? found : found.name).toBe(
    application.isDeleted ? "application_not_found" : application.name,
  );
  if (application.key !== undefined) {
    expect(await isAccepted(api, application.key)).toBe(!application.isDeleted);
  }
  for (const key of application.revokedKeys) {
    expect(await isAccepted(api, key)).toBe(false);
  }
  const { data } = await api.listEvents(manager, { target: application.id, size: 100 });
  const counts: Record<string, number> = {};
  for (const { kind } of data.filter(({ kind }) => !kind.startsWith("access."))) {
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  expect(counts).toEqual(application.changes);
}

/** A change without a response took effect completely or not at all. */
function resolvePendingChange(
  application: ExpectedApplication,
  found: Found,
  isKeyValid: boolean | undefined,
): void {
  const { pendingChange } = application;
  if (!pendingChange) {
    return;
  }
  application.pendingChange = undefined;
  const name = isReason(found) ? undefined : found.name;
  const tookEffect = {
    "application.updated": name === pendingChange.name,
    "key.regenerated": name !== undefined && isKeyValid === false,
    "application.deleted": name === undefined,
  }[pendingChange.kind];
  if (!tookEffect) {
    return;
  }
  countChange(application, pendingChange.kind);
  application.name = pendingChange.name ?? application.name;
  application.isDeleted = pendingChange.kind === "application.deleted";
  if (pendingChange.kind === "key.regenerated") {
    application.revokedKeys.push(application.key as string);
    application.key = undefined;
  }
}

type Found = Awaited<ReturnType<Api["getApplication"]>> | string;

const isReason = (found: unknown): found is string => typeof found === "string";

function orReason(error: unknown): string {
  if (error instanceof ApiFailure) {
    return error.reason;
  }
  throw error;
}

const isAccepted = async (api: Api, key: string): Promise<boolean> => {
  const outcome = await api.whoAmI(key).catch(orReason);
  expect(isReason(outcome) ? outcome : "unauthenticated").toBe("unauthenticated");
  return !isReason(outcome);
};

/** Checks that an acknowledged nonce is used, and that a nonce can be used only once. */
export async function verifySession(
  api: Api,
  { manager, backend }: LoadKeys,
  session: ExpectedSession,
) {
  const { id, nonce } = session;
  const { authorizedAt } = await api.getSession(manager, { id });
  const isNonceUsed = authorizedAt !== undefined;
  if (session.isAuthorized) {
    expect(isNonceUsed).toBe(true);
  }
  const authorizing = api.authorizeSession(backend, { nonce, ...grants });
  const second = await authorizing.then(() => undefined, orReason);
  expect(second).toBe(isNonceUsed ? "nonce_used" : undefined);
  session.isAuthorized = true;
  const { data } = await api.listEvents(manager, { target: id, kind: ["session.authorized"] });
  expect(data).toHaveLength(1);
}
