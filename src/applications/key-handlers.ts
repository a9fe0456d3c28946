import { callerOf } from "../caller.js";
import { keyNotFound } from "../errors.js";
import { newId } from "../ids.js";
import { kindFor, makeKey } from "../keys.js";
import { readDuration, toTimestamp } from "../moments.js";
import type { ApplicationRecord } from "../store/store.js";
import { findApplication } from "./find-application.js";
import type { ApplicationHandlers, ChangingOptions } from "./handlers.js";
import { replaceKey, withoutKey, workingKeys } from "./key-rotation.js";
import { toApplication } from "./to-application.js";

/** What makes, shows and ends the keys of applications. */
export function createKeyHandlers({
  store,
  keyring,
  grantGuard,
  changeApplication,
  clock,
}: ChangingOptions): Pick<
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
      const answer = (record: ApplicationRecord) => toApplication(record, text);
      const record = await changeApplication(context, request, {
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
        answer,
      });
      return answer(record);
    },

    async listApplicationKeys(request, context) {
      const record = await findApplication(applications, context, request);
      const keys = workingKeys(record.keys, await store.now());
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
      await changeApplication(context, request, {
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
        answer: () => ({}),
      });
      return {};
    },
  };
}
