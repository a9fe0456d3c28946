import { tooManyKeys } from "../errors.js";
import { expiredRetention, type KeyRecord, type NewKey } from "../store/store.js";

/** How many keys of an application may work at a time. */
const mostKeys = 3;

/** The keys that work at a moment. */
export function workingKeys(keys: readonly KeyRecord[], now: number): readonly KeyRecord[] {
  return keys.filter(({ expiresAt }) => expiresAt === undefined || now < expiresAt);
}

/** How many keys that have ended are kept for those who tell of ends. */
const mostEnded = 3;

/** The keys that have ended lately: what ended is told some seconds later, from the record. */
function endedKeys(keys: readonly KeyRecord[], now: number): readonly KeyRecord[] {
  return keys
    .filter(({ expiresAt: end }) => end !== undefined && end <= now && now - end < expiredRetention)
    .slice(0, mostEnded);
}

/**
 * The keys once a new one is made. Without a grace it is the only one that
 * works. With one, the key before it ends when the grace is over, and those
 * that were given an end earlier keep theirs.
 */
export function replaceKey(
  keys: readonly KeyRecord[],
  key: NewKey,
  now: number,
  grace: number | undefined,
): readonly KeyRecord[] {
  const made: KeyRecord = { ...key, createdAt: now };
  const ended = endedKeys(keys, now);
  if (grace === undefined) {
    return [made, ...ended];
  }
  const earlier = workingKeys(keys, now);
  if (earlier.length >= mostKeys) {
    throw tooManyKeys(mostKeys);
  }
  return [made, ...earlier.map((key) => withEnd(key, now + grace)), ...ended];
}

/** The keys without one of those that work, or `undefined` where there is no such one. */
export function withoutKey(
  keys: readonly KeyRecord[],
  id: string,
  now: number,
): readonly KeyRecord[] | undefined {
  const working = workingKeys(keys, now);
  const left = working.filter((key) => key.id !== id);
  return left.length < working.length ? [...left, ...endedKeys(keys, now)] : undefined;
}

function withEnd(key: KeyRecord, end: number): KeyRecord {
  return key.expiresAt === undefined ? { ...plain(key), expiresAt: end } : key;
}

/** A key as a record of its own: one from the store is never spread. */
function plain({ id, hash, foreign, createdAt, lastUsedAt }: KeyRecord): KeyRecord {
  return { id, hash, foreign, createdAt, lastUsedAt };
}
