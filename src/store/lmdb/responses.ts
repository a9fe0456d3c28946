import type { NewResponse, ResponseStore } from "../port/change.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import { after, emptyValue, timeBytes } from "./row-keys.js";

/** A row of `responses` is the expiry, then the sealed response. */
const timeSize = 8;

/** The stored responses of idempotent calls. Ids are hexadecimal. */
export interface Responses extends ResponseStore {
  /** Whether a response is stored, inside `write`. */
  has(id: string): boolean;

  /** Stores a response, inside `write`. It may replace an expired one. */
  put(id: string, response: NewResponse): void;

  needsPruning(now: number): boolean;

  /** Removes expired responses. */
  prune(now: number, limit: number): void;
}

export function createResponses({ read, tables }: Environment, clock: Clock): Responses {
  const { responses, responseExpirations } = tables;

  function findUnexpired(id: string): Buffer | undefined {
    const row = responses.get(Buffer.from(id, "hex"));
    return row && clock() < row.readDoubleBE(0) ? row : undefined;
  }

  function expired(now: number, limit: number): Buffer[] {
    return [...responseExpirations.getKeys({ end: after(timeBytes(now)), limit })];
  }

  return {
    async find(id) {
      return read(() => findUnexpired(id)?.subarray(timeSize));
    },

    has: (id) => findUnexpired(id) !== undefined,

    put(id, { sealed, ttl }) {
      const key = Buffer.from(id, "hex");
      const replaced = responses.get(key);
      if (replaced) {
        responseExpirations.remove(responseExpirationKey(replaced, key));
      }
      const row = Buffer.concat([timeBytes(clock() + ttl), sealed]);
      responses.put(key, row);
      responseExpirations.put(responseExpirationKey(row, key), emptyValue);
    },

    needsPruning: (now) => expired(now, 1).length > 0,

    prune(now, limit) {
      for (const key of expired(now, limit)) {
        responses.remove(key.subarray(timeSize));
        responseExpirations.remove(key);
      }
    },
  };
}

function responseExpirationKey(row: Buffer, key: Buffer): Buffer {
  return Buffer.concat([row.subarray(0, timeSize), key]);
}
