import { type Awaitable, whenThere } from "./awaitable.js";
import type { Caller } from "./caller.js";
import { type Keyring, kindFor, type ParsedKey, parseKey } from "./keys.js";
import type { ApplicationRecord, SessionWithApplication, Store } from "./store/store.js";

/** Finds out whose key it is, or answers `undefined` where it is nobody's. */
export type Identify = (key: string) => Awaitable<Caller | undefined>;

/** Finds out whose keys these are, each at the place of the key. */
export type IdentifyMany = (keys: readonly string[]) => Promise<readonly (Caller | undefined)[]>;

interface Finders {
  application(id: string): Awaitable<ApplicationRecord | undefined>;
  session(id: string): Awaitable<SessionWithApplication | undefined>;
}

/** Identifies keys that work. */
export function createIdentify({ applications, sessions }: Store, keyring: Keyring): Identify {
  return identifyWith({ application: applications.find, session: sessions.find }, keyring);
}

/** Identifies keys that have expired, for as long as the store remembers them. */
export function createIdentifyExpired(
  { applications, sessions }: Store,
  keyring: Keyring,
): Identify {
  const finders = { application: applications.findExpired, session: sessions.findExpired };
  return identifyWith(finders, keyring);
}

function identifyWith({ application, session }: Finders, keyring: Keyring): Identify {
  return (key) => {
    const parsed = parseOwned(key);
    if (!parsed) {
      return undefined;
    }
    return parsed.kind === "ses"
      ? whenThere(session(parsed.id), (found) => ownerOfSession(found, key, keyring))
      : whenThere(application(parsed.id), (found) =>
          ownerOfApplication(found, parsed, key, keyring),
        );
  };
}

/** Identifies many keys that work. A key that is there several times is looked up once. */
export function createIdentifyMany(
  { applications, sessions }: Store,
  keyring: Keyring,
): IdentifyMany {
  return async (keys) => {
    const owners = new Map<string, Caller | undefined>();
    const ofApplications: Owned[] = [];
    const ofSessions: Owned[] = [];
    for (const key of keys) {
      if (owners.has(key)) {
        continue;
      }
      owners.set(key, undefined);
      const parsed = parseOwned(key);
      if (parsed) {
        (parsed.kind === "ses" ? ofSessions : ofApplications).push({ key, parsed });
      }
    }
    if (ofApplications.length > 0) {
      const found = await applications.findMany(ofApplications.map(({ parsed }) => parsed.id));
      for (const [at, { key, parsed }] of ofApplications.entries()) {
        owners.set(key, ownerOfApplication(found[at], parsed, key, keyring));
      }
    }
    if (ofSessions.length > 0) {
      const found = await sessions.findMany(ofSessions.map(({ parsed }) => parsed.id));
      for (const [at, { key }] of ofSessions.entries()) {
        owners.set(key, ownerOfSession(found[at], key, keyring));
      }
    }
    return keys.map((key) => owners.get(key));
  };
}

interface Owned {
  readonly key: string;
  readonly parsed: ParsedKey;
}

/** Takes a key apart that someone can come with; a nonce is no such key. */
function parseOwned(key: string): ParsedKey | undefined {
  const parsed = parseKey(key);
  return parsed?.kind === "non" ? undefined : parsed;
}

function ownerOfSession(
  found: SessionWithApplication | undefined,
  key: string,
  keyring: Keyring,
): Caller | undefined {
  return found && keyring.matches(key, found.session.keyHash) ? found : undefined;
}

function ownerOfApplication(
  application: ApplicationRecord | undefined,
  { kind }: ParsedKey,
  key: string,
  keyring: Keyring,
): Caller | undefined {
  const isOwner =
    application !== undefined &&
    kindFor(application.type) === kind &&
    keyring.matches(key, application.keyHash);
  return isOwner ? { application } : undefined;
}
