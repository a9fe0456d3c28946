import type { GrantPolicy } from "../config/settings.js";
import { kindFor, type ParsedKey, parseKey } from "../contract/key-format.js";
import { type MaybePromise, mapMaybePromise } from "../lib/maybe-promise.js";
import type { ApplicationRecord, SessionWithApplication } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import type { Caller } from "./caller.js";
import type { Keyring } from "./keys.js";

/** Finds out whose key it is, or answers `undefined` where it is nobody's. */
export type Identify = (key: string) => MaybePromise<Caller | undefined>;

/** Finds out whose keys these are, each at the place of the key. */
export type IdentifyMany = (keys: readonly string[]) => Promise<readonly (Caller | undefined)[]>;

/** A key that does not work, and why not. */
export interface Refused {
  readonly owner: Caller;
  readonly why: "expired" | "disabled";
}

/** Finds out whose key it was that does not work, for as long as the store remembers it. */
export type IdentifyRefused = (key: string) => MaybePromise<Refused | undefined>;

/** Whom a key names that does not work, whoever made it up. */
export interface Named {
  readonly owner: Caller;
  /** Why it does not work; absent where it is none of the owner's keys. */
  readonly why: Refused["why"] | undefined;
}

/** Finds whom a key names that does not work, for as long as the store remembers. */
export type FindNamed = (key: string) => MaybePromise<Named | undefined>;

/** Identifies keys that work. */
export function createIdentify(store: Store, keyring: Keyring, grantPolicy: GrantPolicy): Identify {
  const { applications, sessions } = store;
  const worksNow = createWorksNow(store);
  const addBoundary = createAddBoundary(grantPolicy);
  const identifyForeign = createIdentifyForeign(store, keyring);
  return (key) => {
    const parsed = parseOwned(key);
    if (!parsed) {
      return identifyForeign(key);
    }
    return parsed.kind === "ses"
      ? mapMaybePromise(sessions.find(parsed.id), (found) =>
          worksNow(addBoundary(ownerOfSession(found, key, keyring))),
        )
      : mapMaybePromise(applications.find(parsed.id), (found) =>
          worksNow(ownerOfApplication(found, parsed, key, keyring)),
        );
  };
}

/** Identifies many keys that work. A key that is there several times is looked up once. */
export function createIdentifyMany(
  store: Store,
  keyring: Keyring,
  grantPolicy: GrantPolicy,
): IdentifyMany {
  const { applications, sessions } = store;
  const worksNow = createWorksNow(store);
  const addBoundary = createAddBoundary(grantPolicy);
  const identifyForeign = createIdentifyForeign(store, keyring);
  return async (keys) => {
    const owners = new Map<string, MaybePromise<Caller | undefined>>();
    const ofApplications: Owned[] = [];
    const ofSessions: Owned[] = [];
    const others: string[] = [];
    for (const key of keys) {
      if (owners.has(key)) {
        continue;
      }
      const parsed = parseOwned(key);
      owners.set(key, undefined);
      if (parsed) {
        (parsed.kind === "ses" ? ofSessions : ofApplications).push({ key, parsed });
      } else {
        others.push(key);
      }
    }
    const foundApplications =
      ofApplications.length > 0 ? await applications.findMany(idsOf(ofApplications)) : [];
    const foundSessions = ofSessions.length > 0 ? await sessions.findMany(idsOf(ofSessions)) : [];
    // From here on nothing is waited for until all is: what fails unattended would end the process.
    for (const [at, { key, parsed }] of ofApplications.entries()) {
      owners.set(key, worksNow(ownerOfApplication(foundApplications[at], parsed, key, keyring)));
    }
    for (const [at, { key }] of ofSessions.entries()) {
      owners.set(key, worksNow(addBoundary(ownerOfSession(foundSessions[at], key, keyring))));
    }
    for (const key of others) {
      owners.set(key, identifyForeign(key));
    }
    const found = keys.map((key) => owners.get(key));
    return found.some((owner) => owner instanceof Promise)
      ? Promise.all(found)
      : (found as (Caller | undefined)[]);
  };
}

/** Identifies keys that have expired, or whose application or authorizer is disabled. */
export function createIdentifyRefused(store: Store, keyring: Keyring): IdentifyRefused {
  const findNamed = createFindNamed(store, keyring);
  return (key) =>
    mapMaybePromise(
      findNamed(key),
      (named) => named?.why && { owner: named.owner, why: named.why },
    );
}

/** Finds whom keys name that do not work. */
export function createFindNamed(store: Store, keyring: Keyring): FindNamed {
  const { applications, sessions } = store;

  function whyRefused(owner: Caller, isExpired: boolean): MaybePromise<Refused["why"] | undefined> {
    return mapMaybePromise(isExpired || hasEnded(store, owner), (hasEnded) => {
      if (hasEnded) {
        return "expired";
      }
      return isDisabled(owner) ? "disabled" : undefined;
    });
  }

  function nameBy(
    found: Caller | undefined,
    owner: Caller | undefined,
    isExpired: boolean,
  ): MaybePromise<Named | undefined> {
    return owner
      ? mapMaybePromise(whyRefused(owner, isExpired), (why) => ({ owner, why }))
      : found && { owner: found, why: undefined };
  }

  function nameApplication(
    id: string,
    ownerIn: (application: ApplicationRecord | undefined) => Caller | undefined,
  ): MaybePromise<Named | undefined> {
    return mapMaybePromise(applications.find(id), (alive) =>
      mapMaybePromise(alive ?? applications.findExpired(id), (application) =>
        nameBy(application && { application }, ownerIn(application), !alive),
      ),
    );
  }

  return (key) => {
    const parsed = parseOwned(key);
    if (!parsed) {
      return mapMaybePromise(findForeign(store, keyring, key), (id) =>
        id === undefined
          ? undefined
          : nameApplication(id, (application) => ownerOfForeign(application, key, keyring)),
      );
    }
    const { id } = parsed;
    if (parsed.kind === "ses") {
      return mapMaybePromise(sessions.find(id), (alive) =>
        mapMaybePromise(alive ?? sessions.findExpired(id), (found) =>
          nameBy(found, ownerOfSession(found, key, keyring), !alive),
        ),
      );
    }
    return nameApplication(id, (application) =>
      ownerOfApplication(application, parsed, key, keyring),
    );
  };
}

/** Identifies keys that work and were made elsewhere, where those are accepted. */
function createIdentifyForeign(store: Store, keyring: Keyring): Identify {
  const worksNow = createWorksNow(store);
  return (key) =>
    mapMaybePromise(findForeign(store, keyring, key), (id) =>
      id === undefined
        ? undefined
        : mapMaybePromise(store.applications.find(id), (application) =>
            worksNow(ownerOfForeign(application, key, keyring)),
          ),
    );
}

/** The id of the application of a key that was made elsewhere: it does not tell, so it is looked up by its hash. */
function findForeign(
  { applications }: Store,
  keyring: Keyring,
  key: string,
): MaybePromise<string | undefined> {
  return keyring.acceptsForeign(key) ? applications.findForeign(keyring.hashes(key)) : undefined;
}

interface Owned {
  readonly key: string;
  readonly parsed: ParsedKey;
}

function idsOf(owned: readonly Owned[]): string[] {
  return owned.map(({ parsed }) => parsed.id);
}

/** Takes a key apart that someone can come with; a nonce is no such key. */
function parseOwned(key: string): ParsedKey | undefined {
  const parsed = parseKey(key);
  return parsed?.kind === "non" ? undefined : parsed;
}

/** Lets only an owner pass whose key is not refused for now and has not ended. */
function createWorksNow(store: Store) {
  return (owner: Caller | undefined): MaybePromise<Caller | undefined> => {
    if (!owner || isDisabled(owner)) {
      return undefined;
    }
    if (owner.key?.expiresAt === undefined) {
      return owner;
    }
    return mapMaybePromise(hasEnded(store, owner), (hasEnded) => (hasEnded ? undefined : owner));
  };
}

/** Sees to it that a session may do only what its authorizer may do too, where the policy says so. */
function createAddBoundary(grantPolicy: GrantPolicy) {
  return (owner: SessionWithApplication | undefined): Caller | undefined =>
    owner?.authorizer && grantPolicy === "held" ? { ...owner, boundary: owner.authorizer } : owner;
}

/** Whether a key is refused for now. */
function isDisabled({ application, authorizer }: Caller): boolean {
  return application.disabled || authorizer?.disabled === true;
}

/** Whether a key that was replaced has come to its end; the store, which knows the time, keeps it a while longer. */
function hasEnded(store: Store, { key }: Caller): MaybePromise<boolean> {
  const end = key?.expiresAt;
  return end === undefined ? false : mapMaybePromise(store.now(), (now) => end <= now);
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
  { kind }: ParsedKey,
  text: string,
  keyring: Keyring,
): Caller | undefined {
  if (!application || kindFor(application.type) !== kind) {
    return undefined;
  }
  const key = keyring.find(text, application.keys);
  return key && { application, key };
}

/** Of a foreign key the application may be of any type. */
function ownerOfForeign(
  application: ApplicationRecord | undefined,
  text: string,
  keyring: Keyring,
): Caller | undefined {
  const foreign = application?.keys.filter((key) => key.foreign) ?? [];
  const key = keyring.find(text, foreign);
  return application && key && { application, key };
}
