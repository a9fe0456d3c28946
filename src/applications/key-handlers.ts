import { aboutApplication, callerOf } from "../caller.js";
import { applicationNotFound, keyNotFound } from "../errors.js";
import { newId } from "../ids.js";
import { kindFor, makeKey } from "../keys.js";
import { readDuration, toTimestamp } from "../moments.js";
import type { ApplicationRecord } from "../store/store.js";
import { checkVersion } from "./check-version.js";
import type { ApplicationHandlerOptions, ApplicationHandlers } from "./handlers.js";
import { replaceKey, withoutKey, workingKeys } from "./key-rotation.js";
import { toApplication } from "./to-application.js";

/** What makes, shows and ends the keys of applications. */
export function createKeyHandlers({
  store,
  keyring,
  grantGuard,
  trailOf,
  clock,
}: ApplicationHandlerOptions): Pick<
  ApplicationHandlers,
  "regenerateApplicationKey" | "listApplicationKeys" | "deleteApplicationKey"
> {
  const { applications } = store;
  return {
    async regenerateApplicationKey(request, context) {
      const caller = callerOf(context);
      const { tenantId, id: modifiedBy } = caller.application;
      const id = aboutApplication(context, request.id);
      const grace = request.gracePeriod && readDuration(request.gracePeriod, "grace_period");

      const keyId = newId(clock());
      let text = "";
      const answer = (record: ApplicationRecord) => toApplication(record, text);
      const record = await applications.update(
        tenantId,
        id,
        (current, now) => {
          checkVersion(current, request.ifMatch);
          grantGuard.checkMayGive(caller, current);
          text = makeKey(kindFor(current.type), id);
          const key = { id: keyId, hash: keyring.hash(text) };
          return { keys: replaceKey(current.keys, key, now, grace), modifiedBy };
        },
        trailOf(context, {
          kind: "key.regenerated",
          target: () => ({ applicationId: id, keyId }),
          endsAt: ({ keys }) => keys[1]?.expiresAt,
          answer,
        }),
      );
      if (!record) {
        throw applicationNotFound(id);
      }
      return answer(record);
    },

    async listApplicationKeys(request, context) {
      const id = request.id.toLowerCase();
      const record = await applications.find(id);
      if (record?.tenantId !== callerOf(context).application.tenantId) {
        throw applicationNotFound(id);
      }
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
      const { tenantId, id: modifiedBy } = callerOf(context).application;
      const id = request.id.toLowerCase();
      const keyId = request.keyId.toLowerCase();
      const record = await applications.update(
        tenantId,
        id,
        (current, now) => {
          checkVersion(current, request.ifMatch);
          const keys = withoutKey(current.keys, keyId, now);
          if (!keys) {
            throw keyNotFound(keyId);
          }
          return { keys, modifiedBy };
        },
        trailOf(context, {
          kind: "key.deleted",
          target: () => ({ applicationId: id, keyId }),
          answer: () => ({}),
        }),
      );
      if (!record) {
        throw applicationNotFound(id);
      }
      return {};
    },
  };
}
