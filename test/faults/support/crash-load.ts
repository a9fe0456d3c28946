import { type Api, ApiFailure, keyOf } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { type Account, type CrashLedger, note } from "./crash-ledger.js";

/** The keys that the load uses. */
export interface CrashLoadKeys {
  readonly manager: string;
  /** The key of a page, which opens sessions, and of a backend, which authorizes them. */
  readonly page: string;
  readonly backend: string;
}

export const grants = { permissions: ["token:read"] };

const lanes = 6;

/** Sends all kinds of writes until the service is gone, and records the acknowledged ones. */
export async function writeUntilCut(
  url: string,
  keys: CrashLoadKeys,
  ledger: CrashLedger,
  random: () => number,
): Promise<void> {
  const api = createRestApi(url);
  const works = Array.from({ length: lanes }, async () => {
    const own: Account[] = [];
    try {
      for (;;) {
        await writeOnce(api, keys, ledger, own, random);
      }
    } catch (error) {
      // A refusal is unexpected. A missing response is uncertain.
      if (error instanceof ApiFailure) {
        throw error;
      }
    }
  });
  await Promise.all(works);
}

async function writeOnce(
  api: Api,
  keys: CrashLoadKeys,
  ledger: CrashLedger,
  own: Account[],
  random: () => number,
): Promise<void> {
  const chance = random();
  const account = own[Math.floor(random() * own.length)];
  if (chance < 0.25) {
    await authorize(api, keys, ledger);
  } else if (!account || chance < 0.5) {
    own.push(await create(api, keys, ledger));
  } else if (chance < 0.7) {
    await update(api, keys, account);
  } else if (chance < 0.85) {
    await regenerate(api, keys, account);
  } else {
    await remove(api, keys, account);
    own.splice(own.indexOf(account), 1);
  }
}

async function create(api: Api, { manager }: CrashLoadKeys, ledger: CrashLedger): Promise<Account> {
  const made = await api.createApplication(manager, { name: "0", type: "private", ...grants });
  const account: Account = {
    id: made.id,
    name: made.name,
    key: keyOf(made),
    endedKeys: [],
    isDeleted: false,
    changes: { "application.created": 1 },
  };
  ledger.applications.push(account);
  return account;
}

async function update(api: Api, { manager }: CrashLoadKeys, account: Account): Promise<void> {
  const name = String(Number(account.name) + 1);
  account.doubt = { kind: "application.updated", name };
  await api.updateApplication(manager, { id: account.id, name, ...grants });
  account.name = name;
  settle(account);
}

async function regenerate(api: Api, { manager }: CrashLoadKeys, account: Account): Promise<void> {
  account.doubt = { kind: "key.regenerated" };
  const made = await api.regenerateApplicationKey(manager, { id: account.id });
  account.endedKeys.push(account.key as string);
  account.key = keyOf(made);
  settle(account);
}

async function remove(api: Api, { manager }: CrashLoadKeys, account: Account): Promise<void> {
  account.doubt = { kind: "application.deleted" };
  await api.deleteApplication(manager, { id: account.id });
  account.isDeleted = true;
  settle(account);
}

function settle(account: Account): void {
  note(account, account.doubt?.kind ?? "");
  account.doubt = undefined;
}

async function authorize(
  api: Api,
  { page, backend }: CrashLoadKeys,
  ledger: CrashLedger,
): Promise<void> {
  const { id, nonce } = await api.createSession(page);
  const session = { id, nonce, isAuthorized: false };
  ledger.sessions.push(session);
  await api.authorizeSession(backend, { nonce, ...grants });
  session.isAuthorized = true;
}
