/** The stored responses of idempotent changes. */
import { Binary, type ClientSession, type Collection } from "mongodb";
import type { NewResponse, ResponseStore } from "../port/change.js";
import type { FreshRead } from "./connect.js";
import { notExpired, type Time } from "./documents.js";
import { callDriver, isDuplicateKey, limitsOf } from "./driver-call.js";

interface ResponseDocument {
  readonly _id: Binary;
  readonly sealed: Binary;
  readonly expires_at: Date;
}

export interface ResponseDocuments extends ResponseStore {
  isStored(id: string): Promise<boolean>;
  /** Stores a response that was made at a time, unless an unexpired one is stored: then it returns false. */
  store(id: string, response: NewResponse, now: number, session?: ClientSession): Promise<boolean>;
}

export function createResponseDocuments(
  documents: Collection<ResponseDocument>,
  time: Time,
  freshRead: FreshRead,
): ResponseDocuments {
  const find = (id: string, projection: object = {}) =>
    callDriver(() =>
      documents.findOne(
        { _id: idOf(id), ...notExpired(time) },
        { projection, ...limitsOf(documents), ...freshRead() },
      ),
    );

  return {
    async find(id) {
      return (await find(id))?.sealed.value();
    },

    async isStored(id) {
      return (await find(id, { _id: 1 })) !== null;
    },

    async store(id, { sealed, ttl }, now, session) {
      const _id = idOf(id);
      const response = { sealed: new Binary(sealed), expires_at: new Date(now + ttl) };
      const expired = { _id, expires_at: { $lte: new Date(now) } };
      const options = { upsert: true, ...limitsOf(documents, session) };
      try {
        await callDriver(() => documents.replaceOne(expired, response, options));
        return true;
      } catch (error) {
        if (isDuplicateKey(error)) {
          return false;
        }
        throw error;
      }
    },
  };
}

const idOf = (id: string): Binary => new Binary(Buffer.from(id, "hex"));
