import { Binary, type ClientSession, type Collection } from "mongodb";
import type { NewResponse, ResponseStore } from "../port/audit.js";
import type { FreshRead } from "./connect.js";
import { callDriver, limits } from "./driver-call.js";
import { notExpired, type Time } from "./time.js";

interface ResponseDocument {
  readonly _id: Binary;
  readonly sealed: Binary;
  readonly expires_at: Date;
}

/** The stored responses of idempotent changes, each written in the transaction of its change. */
export interface ResponseDocuments extends ResponseStore {
  isStored(id: string, session: ClientSession): Promise<boolean>;
  /** Replaces an expired response. The same transaction must have called `isStored`. */
  store(id: string, answer: NewResponse, session: ClientSession): Promise<void>;
}

export function createResponseDocuments(
  documents: Collection<ResponseDocument>,
  time: Time,
  freshRead: FreshRead,
): ResponseDocuments {
  return {
    async find(id) {
      const filter = { _id: idOf(id), ...notExpired(time) };
      const found = await callDriver(() =>
        documents.findOne(filter, { ...limits, ...freshRead() }),
      );
      return found ? found.sealed.value() : undefined;
    },

    async isStored(id, session) {
      const filter = { _id: idOf(id), ...notExpired(time) };
      const options = { projection: { _id: 1 }, session, ...limits };
      return (await callDriver(() => documents.findOne(filter, options))) !== null;
    },

    async store(id, { sealed, ttl }, session) {
      const fields = { _id: idOf(id), sealed: new Binary(sealed) };
      const expires_at = { $add: [time(), ttl] };
      await callDriver(() =>
        documents.updateOne(
          { _id: fields._id },
          [{ $replaceWith: { $mergeObjects: [{ $literal: fields }, { expires_at }] } }],
          { upsert: true, session, ...limits },
        ),
      );
    },
  };
}

const idOf = (id: string): Binary => new Binary(Buffer.from(id, "hex"));
