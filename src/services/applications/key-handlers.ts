import { ApplicationKeySchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { formatKey, generateSecret } from "../../auth/keys.js";
import { keyTypeOf } from "../../contract/key-text.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import { keyNotFound, tooManyKeys } from "../../errors.js";
import { newId } from "../../lib/uuid.js";
import {
  type ApplicationRecord,
  copyKey,
  expiredRetention,
  isUnexpired,
  type KeyRecord,
  type NewKey,
} from "../../store/port/records.js";
import { readDuration, toTimestamp } from "../../validation/time.js";
import { createShortPages } from "../pagination.js";
import { toApplication } from "./messages.js";
import { findApplication } from "./read-handlers.js";
import { type ApplicationHandlers, createUpdateApplication } from "./update-application.js";

/** Handlers that create, list and delete the keys of applications. */
export function createKeyHandlers({
  store,
  keyring,
  grantGuard,
  commit,
  clock,
  createSealer,
}: Pick<
  Dependencies,
  "store" | "keyring" | "grantGuard" | "commit" | "clock" | "createSealer"
>): Pick<
  ApplicationHandlers,
  "regenerateApplicationKey" | "listApplicationKeys" | "deleteApplicationKey"
> {
  const { applications } = store;
  const updateApplication = createUpdateApplication({ commit, grantGuard });
  const pageOf = createShortPages<KeyRecord>(createSealer, "keys", {
    idOf: ({ id }) => id,
    isAfter: ({ id }, after) => id < after,
  });
  return {
    async regenerateApplicationKey(request, context) {
      const { gracePeriod } = request;
      const grace = gracePeriod && readDuration(gracePeriod, "grace_period");

      const keyId = newId(clock());
      const secret = generateSecret();
      const keyOf = ({ type, id }: ApplicationRecord) => formatKey(keyTypeOf(type), id, secret);
      return updateApplication(context, request, {
        revokes: !grace,
        givesKey: true,
        change(current, now) {
          const key = { id: keyId, hash: keyring.hash(keyOf(current)) };
          return { keys: replaceKey(current.keys, key, now, grace || undefined) };
        },
        event: ({ keys }) => ({ kind: "key.regenerated", keyId, endsAt: keys[1]?.expiresAt }),
        reply: (record) => toApplication(record, keyOf(record)),
      });
    },

    async listApplicationKeys(request, context) {
      const record = await findApplication(applications, context, request);
      const keys = validKeys(record.keys, await store.now());
      const { page, pagination } = pageOf(context, keys, request);
      return { data: page.map(toKeyMessage), pagination };
    },

    async deleteApplicationKey(request, context) {
      const keyId = request.keyId.toLowerCase();
      return updateApplication(context, request, {
        revokes: true,
        change(current, now) {
          const keys = withoutKey(current.keys, keyId, now);
          if (!keys) {
            throw keyNotFound(keyId);
          }
          return { keys };
        },
        event: () => ({ kind: "key.deleted", keyId }),
        reply: () => ({}),
      });
    },
  };
}

const toKeyMessage = createConverter(ApplicationKeySchema, { values: { time: toTimestamp } });

/** The maximum number of valid keys per application. */
const maxKeys = 3;

export function validKeys(keys: readonly KeyRecord[], now: number): readonly KeyRecord[] {
  return keys.filter((key) => isUnexpired(key, now));
}

const maxExpiredKeys = 3;

/** Recently expired keys. They stay in the record because expiry events are written some seconds later. */
function expiredKeys(keys: readonly KeyRecord[], now: number): readonly KeyRecord[] {
  return keys
    .filter(({ expiresAt: end }) => end !== undefined && end <= now && now - end < expiredRetention)
    .slice(0, maxExpiredKeys);
}

/**
 * Adds a new key. Without a grace period it is the only valid key. With one, the
 * previous key expires when the grace period ends, and older keys keep their expiry.
 */
export function replaceKey(
  keys: readonly KeyRecord[],
  key: NewKey,
  now: number,
  grace: number | undefined,
): readonly KeyRecord[] {
  const created: KeyRecord = { ...key, createdAt: now };
  const expired = expiredKeys(keys, now);
  if (grace === undefined) {
    return [created, ...expired];
  }
  const previous = validKeys(keys, now);
  if (previous.length >= maxKeys) {
    throw tooManyKeys(maxKeys);
  }
  return [created, ...previous.map((key) => withExpiry(key, now + grace)), ...expired];
}

/** Removes a valid key. Returns `undefined` if there is no such key. */
export function withoutKey(
  keys: readonly KeyRecord[],
  id: string,
  now: number,
): readonly KeyRecord[] | undefined {
  const valid = validKeys(keys, now);
  const remaining = valid.filter((key) => key.id !== id);
  return remaining.length < valid.length ? [...remaining, ...expiredKeys(keys, now)] : undefined;
}

function withExpiry(key: KeyRecord, expiresAt: number): KeyRecord {
  return key.expiresAt === undefined ? { ...copyKey(key), expiresAt } : key;
}
