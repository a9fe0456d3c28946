import { Binary, type ClientSession, type Collection } from "mongodb";
import type { AnswerStore, NewAnswer } from "../port/audit.js";
import type { FreshRead } from "./connect.js";
import { limits, reach } from "./reach.js";
import { alive, type Time } from "./time.js";

export interface AnswerDocument {
  readonly _id: Binary;
  readonly sealed: Binary;
  readonly expires_at: Date;
}

/** The answers that changes leave behind, each written in the transaction of its change. */
export interface AnswerDocuments extends AnswerStore {
  isKept(id: string, session: ClientSession): Promise<boolean>;
  /** Keeps an answer in the place of one that has expired. That none is kept the same transaction has seen. */
  keep(id: string, answer: NewAnswer, session: ClientSession): Promise<void>;
}

export function createAnswerDocuments(
  documents: Collection<AnswerDocument>,
  time: Time,
  freshRead: FreshRead,
): AnswerDocuments {
  return {
    async find(id) {
      const filter = { _id: idOf(id), ...alive(time) };
      const found = await reach(() => documents.findOne(filter, { ...limits, ...freshRead() }));
      return found ? found.sealed.value() : undefined;
    },

    async isKept(id, session) {
      const filter = { _id: idOf(id), ...alive(time) };
      const options = { projection: { _id: 1 }, session, ...limits };
      return (await reach(() => documents.findOne(filter, options))) !== null;
    },

    async keep(id, { sealed, ttl }, session) {
      const fields = { _id: idOf(id), sealed: new Binary(sealed) };
      const expires_at = { $add: [time(), ttl] };
      await reach(() =>
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
