import type { ApplicationRecord } from "../store.js";
import type { Tables } from "./environment.js";
import { endKey, noKeyId, nothing } from "./keys.js";

/**
 * What is kept beside the records of applications to tell what ends when: an
 * end stays to be found after it has come, for as long as its record does.
 */
export interface EndIndex {
  /** Follows a record from what it was, if it was, to what it is, if it still is. */
  move(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;
}

export function createEndIndex({ ends }: Tables): EndIndex {
  return {
    move(before, after) {
      for (const key of before ? keysOf(before) : []) {
        ends.remove(key);
      }
      for (const key of after ? keysOf(after) : []) {
        ends.put(key, nothing);
      }
    },
  };
}

function keysOf({ id, expiresAt, keys }: ApplicationRecord): Buffer[] {
  const ofItself = expiresAt === undefined ? [] : [endKey(expiresAt, id, noKeyId)];
  const ofKeys = keys.flatMap((key) =>
    key.expiresAt === undefined ? [] : [endKey(key.expiresAt, id, key.id)],
  );
  return [...ofItself, ...ofKeys];
}
