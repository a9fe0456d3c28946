import type { Caller } from "./caller.js";
import { type Keyring, kindFor, type ParsedKey, parseKey } from "./keys.js";
import type { ApplicationRecord, SessionWithApplication, Store } from "./store/store.js";

/** Finds out whose key it is, or answers `undefined` where it is nobody's. */
export type Identify = (key: string) => Promise<Caller | undefined>;

interface Finders {
  application(id: string): Promise<ApplicationRecord | undefined>;
  session(id: string): Promise<SessionWithApplication | undefined>;
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

function identifyWith(finders: Finders, keyring: Keyring): Identify {
  return async (key) => {
    const parsed = parseKey(key);
    if (!parsed || parsed.kind === "non") {
      return undefined;
    }
    const owner = await ownerOf(parsed, finders);
    const { keyHash } = owner?.session ?? owner?.application ?? {};
    return keyHash && keyring.matches(key, keyHash) ? owner : undefined;
  };
}

async function ownerOf({ kind, id }: ParsedKey, finders: Finders): Promise<Caller | undefined> {
  if (kind === "ses") {
    return finders.session(id);
  }
  const application = await finders.application(id);
  return application && kindFor(application.type) === kind ? { application } : undefined;
}
