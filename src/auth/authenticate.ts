import type { GrantPolicy } from "../config/settings.js";
import { type ParsedKey, parseKey } from "../contract/key-format.js";
import { keyTypeOf } from "../contract/key-text.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import type { ApplicationRecord, SessionWithApplication } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import type { Caller } from "./caller.js";
import type { Keyring } from "./keys.js";

/** Returns the owner of a valid key, or `undefined`. */
export type Authenticate = (key: string) => MaybePromise<Caller | undefined>;

/** Returns the owner of each key, in the order of the keys. */
export type AuthenticateMany = (
  keys: readonly string[],
) => Promise<readonly (Caller | undefined)[]>;

/** An expired or disabled key. */
export interface InactiveKey {
  readonly owner: Caller;
  readonly reason: "expired" | "disabled";
}

/** Returns the owner of an expired or disabled key, while the store still has it. */
type IdentifyInactive = (key: string) => MaybePromise<InactiveKey | undefined>;

/** The application or session whose id is in an invalid key. */
interface ClaimedOwner {
  readonly owner: Caller;
  /** Why the key is invalid. Absent if its secret does not match, so that it may be forged, or if it is active. */
  readonly reason: InactiveKey["reason"] | undefined;
}

/** Returns the application or session that an invalid key names, while the store still has it. */
export type FindClaimedOwner = (key: string) => MaybePromise<ClaimedOwner | undefined>;

export function createAuthenticate(
  store: Store,
  keyring: Keyring,
  grantPolicy: GrantPolicy,
): Authenticate {
  const ifActive = createIfActive(store);
  const addBoundary = createAddBoundary(grantPolicy);
  return createLocate(store, keyring, "find", (owner) => ifActive(addBoundary(owner)));
}

type Found = ApplicationRecord | SessionWithApplication | undefined;

/**
 * Creates a function that finds the record of a key, wherever it is, and returns what `finish` makes of its owner. The
 * owner is `undefined` if the secret of the key does not match the record. `finish` is part of the lookup, because
 * another promise would cost every call.
 */
function createLocate<T>(
  store: Store,
  keyring: Keyring,
  lookup: "find" | "findExpired",
  finish: (owner: Caller | undefined, found: Found) => MaybePromise<T>,
): (key: string) => MaybePromise<T> {
  const { applications, sessions } = store;
  return (key) => {
    const parsed = parseOwnedKey(key);
    if (!parsed) {
      return mapMaybePromise(findByImportedKey(store, keyring, key), (id) =>
        id === undefined
          ? finish(undefined, undefined)
          : mapMaybePromise(applications[lookup](id), (found) =>
              finish(ownerOfImported(found, key, keyring), found),
            ),
      );
    }
    return parsed.type === "ses"
      ? mapMaybePromise(sessions[lookup](parsed.id), (found) =>
          finish(ownerOfSession(found, key, keyring), found),
        )
      : mapMaybePromise(applications[lookup](parsed.id), (found) =>
          finish(ownerOfApplication(found, parsed, key, keyring), found),
        );
  };
}

/** Returns the application that a client certificate with one of these names belongs to, if it is active. */
export type IdentifyCertificate = (
  names: readonly string[],
) => { readonly owner: MaybePromise<Caller | undefined> } | undefined;

/** Identifies applications by the names in client certificates. Returns `undefined` for unknown names. */
export function createIdentifyCertificate(
  store: Store,
  applicationIds: ReadonlyMap<string, string>,
): IdentifyCertificate {
  const ifActive = createIfActive(store);
  return (names) => {
    const [id] = names.flatMap((name) => applicationIds.get(name) ?? []);
    return id === undefined
      ? undefined
      : {
          owner: mapMaybePromise(store.applications.find(id), (application) =>
            ifActive(application && { application }),
          ),
        };
  };
}

/** Returns the owner of an unexpired key, even if the key is disabled. */
export function createFindOwner(store: Store, keyring: Keyring): Authenticate {
  return createLocate(
    store,
    keyring,
    "find",
    (owner) =>
      owner &&
      mapMaybePromise(hasExpired(store, owner), (isExpired) => (isExpired ? undefined : owner)),
  );
}

/** Authenticates many keys. Duplicates are looked up once. */
export function createAuthenticateMany(
  store: Store,
  keyring: Keyring,
  grantPolicy: GrantPolicy,
): AuthenticateMany {
  const { applications, sessions } = store;
  const ifActive = createIfActive(store);
  const addBoundary = createAddBoundary(grantPolicy);
  const authenticate = createAuthenticate(store, keyring, grantPolicy);
  return async (keys) => {
    const owners = new Map<string, MaybePromise<Caller | undefined>>();
    const applicationKeys: Owned[] = [];
    const sessionKeys: Owned[] = [];
    const imported: string[] = [];
    for (const key of keys) {
      if (owners.has(key)) {
        continue;
      }
      const parsed = parseOwnedKey(key);
      owners.set(key, undefined);
      if (parsed) {
        (parsed.type === "ses" ? sessionKeys : applicationKeys).push({ key, parsed });
      } else {
        imported.push(key);
      }
    }
    const foundApplications =
      applicationKeys.length > 0 ? await applications.findMany(idsOf(applicationKeys)) : [];
    const foundSessions = sessionKeys.length > 0 ? await sessions.findMany(idsOf(sessionKeys)) : [];
    // No await below until all promises are collected: an unhandled rejection would end the process.
    for (const [index, { key, parsed }] of applicationKeys.entries()) {
      owners.set(key, ifActive(ownerOfApplication(foundApplications[index], parsed, key, keyring)));
    }
    for (const [index, { key }] of sessionKeys.entries()) {
      owners.set(key, ifActive(addBoundary(ownerOfSession(foundSessions[index], key, keyring))));
    }
    for (const key of imported) {
      owners.set(key, authenticate(key));
    }
    const found = keys.map((key) => owners.get(key));
    return found.some((owner) => owner instanceof Promise)
      ? Promise.all(found)
      : (found as (Caller | undefined)[]);
  };
}

/** Identifies expired keys, and keys whose application or authorizer is disabled. */
export function createIdentifyInactive(store: Store, keyring: Keyring): IdentifyInactive {
  const findClaimedOwner = createFindClaimedOwner(store, keyring);
  return (key) =>
    mapMaybePromise(
      findClaimedOwner(key),
      (found) => found?.reason && { owner: found.owner, reason: found.reason },
    );
}

export function createFindClaimedOwner(store: Store, keyring: Keyring): FindClaimedOwner {
  function inactiveReason(
    owner: Caller,
    isExpired: boolean,
  ): MaybePromise<InactiveKey["reason"] | undefined> {
    return mapMaybePromise(isExpired || hasExpired(store, owner), (hasExpired) => {
      if (hasExpired) {
        return "expired";
      }
      return isDisabled(owner) ? "disabled" : undefined;
    });
  }

  const locateIn = (lookup: "find" | "findExpired") =>
    createLocate<ClaimedOwner | undefined>(store, keyring, lookup, (owner, found) =>
      owner
        ? mapMaybePromise(inactiveReason(owner, lookup === "findExpired"), (reason) => ({
            owner,
            reason,
          }))
        : found && {
            owner: "session" in found ? found : { application: found },
            reason: undefined,
          },
    );
  const locate = locateIn("find");
  const locateExpired = locateIn("findExpired");
  return (key) => mapMaybePromise(locate(key), (claimed) => claimed ?? locateExpired(key));
}

/** Finds the application of an imported key by its hash, because the key does not contain an id. */
function findByImportedKey(
  { applications }: Store,
  keyring: Keyring,
  key: string,
): MaybePromise<string | undefined> {
  return keyring.acceptsImported(key)
    ? applications.findByImportedKey(keyring.hashes(key))
    : undefined;
}

interface Owned {
  readonly key: string;
  readonly parsed: ParsedKey;
}

function idsOf(owned: readonly Owned[]): string[] {
  return owned.map(({ parsed }) => parsed.id);
}

/** Parses the key of an application or session. Nonces are not accepted. */
function parseOwnedKey(key: string): ParsedKey | undefined {
  const parsed = parseKey(key);
  return parsed?.type === "non" ? undefined : parsed;
}

/** Creates a filter that drops owners whose key is disabled or has expired. */
function createIfActive(store: Store) {
  return (owner: Caller | undefined): MaybePromise<Caller | undefined> => {
    if (!owner || isDisabled(owner)) {
      return undefined;
    }
    if (owner.key?.expiresAt === undefined) {
      return owner;
    }
    return mapMaybePromise(hasExpired(store, owner), (hasExpired) =>
      hasExpired ? undefined : owner,
    );
  };
}

/** Limits a session to the permissions of its authorizer, if the policy requires it. */
export function createAddBoundary(grantPolicy: GrantPolicy) {
  return (owner: Caller | undefined): Caller | undefined =>
    owner?.authorizer && grantPolicy === "held" ? { ...owner, boundary: owner.authorizer } : owner;
}

export function isDisabled({ application, authorizer }: Caller): boolean {
  return application.disabled || authorizer?.disabled === true;
}

/** Whether the grace period of a replaced key is over. The store deletes such keys later. */
function hasExpired(store: Store, { key }: Caller): MaybePromise<boolean> {
  const expiry = key?.expiresAt;
  return expiry === undefined ? false : mapMaybePromise(store.now(), (now) => expiry <= now);
}

function ownerOfSession(
  found: SessionWithApplication | undefined,
  key: string,
  keyring: Keyring,
): SessionWithApplication | undefined {
  return found && keyring.matches(key, found.session.keyHash) ? found : undefined;
}

function ownerOfApplication(
  application: ApplicationRecord | undefined,
  { type }: ParsedKey,
  plaintextKey: string,
  keyring: Keyring,
): Caller | undefined {
  if (!application || keyTypeOf(application.type) !== type) {
    return undefined;
  }
  const key = keyring.find(plaintextKey, application.keys);
  return key && { application, key };
}

/** An imported key can belong to an application of any type. */
function ownerOfImported(
  application: ApplicationRecord | undefined,
  plaintextKey: string,
  keyring: Keyring,
): Caller | undefined {
  const imported = application?.keys.filter((key) => key.imported) ?? [];
  const key = keyring.find(plaintextKey, imported);
  return application && key && { application, key };
}
