import { idFromBytes, idToBytes } from "../../ids.js";
import type { ApplicationRecord } from "../store.js";
import type { Tables } from "./environment.js";
import { after, idAtEnd, nothing } from "./keys.js";

/** What is kept beside the records of applications to find those whose keys were made elsewhere. */
export interface ForeignKeyIndex {
  /** Follows a record from what it was, if it was, to what it is, if it still is. */
  move(before: ApplicationRecord | undefined, after: ApplicationRecord | undefined): void;

  /** The ids of the applications that have a key of this hash: one, but for a mistake. */
  ownersOf(hash: Uint8Array): string[];
}

export function createForeignKeyIndex({ foreignKeys }: Tables): ForeignKeyIndex {
  return {
    move(before, after) {
      for (const key of before ? keysOf(before) : []) {
        foreignKeys.remove(key);
      }
      for (const key of after ? keysOf(after) : []) {
        foreignKeys.put(key, nothing);
      }
    },

    ownersOf(hash) {
      const start = Buffer.from(hash);
      return Array.from(foreignKeys.getKeys({ start, end: after(start) }), (key) =>
        idFromBytes(idAtEnd(key)),
      );
    },
  };
}

function keysOf({ id, keys }: ApplicationRecord): Buffer[] {
  return keys
    .filter(({ foreign }) => foreign)
    .map(({ hash }) => Buffer.concat([hash, idToBytes(id)]));
}
