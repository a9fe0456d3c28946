/** The stored responses of idempotent changes, and the ids of records that such changes create. */
import { Binary, type Collection } from "mongodb";
import type { ResponseStore } from "../port/change.js";
import type { FreshRead } from "./connect.js";
import { fromUuid, notExpired, type StoredResponse, type Time, uuid } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";

interface ResponseDocument {
  readonly _id: Binary;
  readonly record_id?: Binary;
  readonly sealed?: Binary;
  readonly expires_at: Date;
}

/** Milliseconds for which the attempts of a call create the same record. */
const reservationLifetime = 24 * 60 * 60_000;

export interface ResponseDocuments extends ResponseStore {
  isStored(id: string): Promise<boolean>;

  /**
   * Returns the id of the record that all attempts of a call create: the first one proposes it.
   * Returns `undefined` if the response of the call is stored.
   */
  reserve(id: string, proposed: string): Promise<string | undefined>;

  /** Stores responses, except where an unexpired one is stored. Returns whether that was so for one. */
  store(responses: readonly StoredResponse[]): Promise<void>;

  /** Stores a response, unless an unexpired one is stored: then it returns false. */
  storeNew(response: StoredResponse): Promise<boolean>;
}

export function createResponseDocuments(
  documents: Collection<ResponseDocument>,
  time: Time,
  freshRead: FreshRead,
): ResponseDocuments {
  const isCurrent = () => ({ $gt: ["$expires_at", time()] });
  /** A field of a response, unless it has expired. */
  const current = (field: string) => ({ $cond: [isCurrent(), field, "$$REMOVE"] });

  const find = (id: string, projection: object) =>
    callDriver(() =>
      documents.findOne(
        { _id: idOf(id), sealed: { $exists: true }, ...notExpired(time) },
        { projection, ...limitsOf(documents), ...freshRead() },
      ),
    );

  /** Keeps a stored response, and the reserved id with it. */
  const toUpdate = ({ sealed, expires_at }: StoredResponse) => [
    { $set: { sealed: current("$sealed") } },
    {
      $set: {
        expires_at: { $cond: ["$sealed", "$expires_at", expires_at] },
        sealed: { $ifNull: ["$sealed", sealed] },
      },
    },
  ];

  return {
    async find(id) {
      return (await find(id, { sealed: 1 }))?.sealed?.value();
    },

    async isStored(id) {
      return (await find(id, { _id: 1 })) !== null;
    },

    async reserve(id, proposed) {
      const update = [
        {
          $set: {
            sealed: current("$sealed"),
            record_id: { $ifNull: [current("$record_id"), uuid(proposed)] },
          },
        },
        {
          $set: {
            expires_at: {
              $cond: ["$sealed", "$expires_at", { $add: [time(), reservationLifetime] }],
            },
          },
        },
      ];
      const projection = { record_id: 1, isSealed: { $gt: ["$sealed", null] } };
      const options = { upsert: true, returnDocument: "after", projection } as const;
      const reserved = await callDriver(() =>
        documents.findOneAndUpdate({ _id: idOf(id) }, update, {
          ...options,
          ...limitsOf(documents),
        }),
      );
      const { record_id, isSealed } = reserved as ResponseDocument & { isSealed: boolean };
      return isSealed || !record_id ? undefined : fromUuid(record_id);
    },

    async store(responses) {
      if (responses.length === 0) {
        return;
      }
      const writes = responses.map((response) => ({
        updateOne: { filter: { _id: response._id }, update: toUpdate(response), upsert: true },
      }));
      await callDriver(() =>
        documents.bulkWrite(writes, { ordered: false, ...limitsOf(documents) }),
      );
    },

    async storeNew(response) {
      const projection = { isSealed: { $and: [isCurrent(), { $gt: ["$sealed", null] }] } };
      const options = { upsert: true, returnDocument: "before", projection } as const;
      const before = await callDriver(() =>
        documents.findOneAndUpdate({ _id: response._id }, toUpdate(response), {
          ...options,
          ...limitsOf(documents),
        }),
      );
      return !(before as { isSealed?: boolean } | null)?.isSealed;
    },
  };
}

export const idOf = (id: string): Binary => new Binary(Buffer.from(id, "hex"));
