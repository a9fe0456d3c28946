import { expect } from "@jest/globals";
import { type Api, ApiFailure } from "../../support/api/api.js";
import { type Account, note, type SessionAccount } from "./crash-ledger.js";
import { type CrashLoadKeys, grants } from "./crash-load.js";

/** Compares an application with its ledger, and resolves uncertain changes. */
export async function auditApplication(api: Api, { manager }: CrashLoadKeys, account: Account) {
  const found = await api.getApplication(manager, { id: account.id }).catch(orReason);
  const works = account.key === undefined ? undefined : await opens(api, account.key);
  settleDoubt(account, found, works);

  expect(isReason(found) ? found : found.name).toBe(
    account.isDeleted ? "application_not_found" : account.name,
  );
  if (account.key !== undefined) {
    expect(await opens(api, account.key)).toBe(!account.isDeleted);
  }
  for (const key of account.endedKeys) {
    expect(await opens(api, key)).toBe(false);
  }
  const { data } = await api.listEvents(manager, { target: account.id, size: 100 });
  const told: Record<string, number> = {};
  for (const { kind } of data.filter(({ kind }) => !kind.startsWith("access."))) {
    told[kind] = (told[kind] ?? 0) + 1;
  }
  expect(told).toEqual(account.changes);
}

/** A change without a response took effect completely or not at all. */
function settleDoubt(account: Account, found: Found, works: boolean | undefined): void {
  const { doubt } = account;
  if (!doubt) {
    return;
  }
  account.doubt = undefined;
  const name = isReason(found) ? undefined : found.name;
  const wasDone = {
    "application.updated": name === doubt.name,
    "key.regenerated": name !== undefined && works === false,
    "application.deleted": name === undefined,
  }[doubt.kind];
  if (!wasDone) {
    return;
  }
  note(account, doubt.kind);
  account.name = doubt.name ?? account.name;
  account.isDeleted = doubt.kind === "application.deleted";
  if (doubt.kind === "key.regenerated") {
    account.endedKeys.push(account.key as string);
    account.key = undefined;
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

const opens = async (api: Api, key: string): Promise<boolean> => {
  const outcome = await api.whoAmI(key).catch(orReason);
  expect(isReason(outcome) ? outcome : "unauthenticated").toBe("unauthenticated");
  return !isReason(outcome);
};

/** Checks that an acknowledged nonce is used, and that a nonce can be used only once. */
export async function auditSession(
  api: Api,
  { manager, backend }: CrashLoadKeys,
  session: SessionAccount,
) {
  const { id, nonce } = session;
  const { authorizedAt } = await api.getSession(manager, { id });
  const isSpent = authorizedAt !== undefined;
  if (session.isAuthorized) {
    expect(isSpent).toBe(true);
  }
  const again = await api.authorizeSession(backend, { nonce, ...grants }).catch(orReason);
  expect(again).toBe(isSpent ? "nonce_used" : undefined);
  session.isAuthorized = true;
  const { data } = await api.listEvents(manager, { target: id, kind: "session.authorized" });
  expect(data).toHaveLength(1);
}
