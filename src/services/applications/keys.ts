import { callerOf } from "../../auth/caller.js";
import { makeKey } from "../../auth/keys.js";
import { kindFor } from "../../contract/key-format.js";
import { keyNotFound, tooManyKeys } from "../../errors.js";
import { newId } from "../../lib/uuid.js";
import {
  type ApplicationRecord,
  expiredRetention,
  type KeyRecord,
  type NewKey,
} from "../../store/port/records.js";
import { readDuration, toTimestamp } from "../../validation/time.js";
import { toApplication } from "./messages.js";
import { findApplication } from "./queries.js";
import type { ApplicationHandlers, UpdateHandlerOptions } from "./update.js";

/** What makes, shows and ends the keys of applications. */
export function createKeyHandlers({
  store,
  keyring,
  grantGuard,
  updateApplication,
  clock,
}: UpdateHandlerOptions): Pick<
  ApplicationHandlers,
  "regenerateApplicationKey" | "listApplicationKeys" | "deleteApplicationKey"
> {
  const { applications } = store;
  return {
    async regenerateApplicationKey(request, context) {
      const { gracePeriod } = request;
      const grace = gracePeriod && readDuration(gracePeriod, "grace_period");

      const keyId = newId(clock());
      let text = "";
      const response = (record: ApplicationRecord) => toApplication(record, text);
      const record = await updateApplication(context, request, {
        kind: "key.regenerated",
        revokes: !grace,
        change(current, now) {
          grantGuard.checkMayTakeOver(callerOf(context), current);
          text = makeKey(kindFor(current.type), current.id);
          const key = { id: keyId, hash: keyring.hash(text) };
          return { keys: replaceKey(current.keys, key, now, grace || undefined) };
        },
        target: ({ id }) => ({ applicationId: id, keyId }),
        endsAt: ({ keys }) => keys[1]?.expiresAt,
        response,
      });
      return response(record);
    },

    async listApplicationKeys(request, context) {
      const record = await findApplication(applications, context, request);
      const keys = validKeys(record.keys, await store.now());
      return {
        data: keys.map((key) => ({
          id: key.id,
          createdAt: toTimestamp(key.createdAt),
          lastUsedAt: toTimestamp(key.lastUsedAt),
          expiresAt: toTimestamp(key.expiresAt),
        })),
      };
    },

    async deleteApplicationKey(request, context) {
      const keyId = request.keyId.toLowerCase();
      await updateApplication(context, request, {
        kind: "key.deleted",
        revokes: true,
        change(current, now) {
          const keys = withoutKey(current.keys, keyId, now);
          if (!keys) {
            throw keyNotFound(keyId);
          }
          return { keys };
        },
        target: ({ id }) => ({ applicationId: id, keyId }),
        response: () => ({}),
      });
      return {};
    },
  };
}

/** How many keys of an application may work at a time. */
const mostKeys = 3;

/** The keys that work at a moment. */
export function validKeys(keys: readonly KeyRecord[], now: number): readonly KeyRecord[] {
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
  const earlier = validKeys(keys, now);
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
  const working = validKeys(keys, now);
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
