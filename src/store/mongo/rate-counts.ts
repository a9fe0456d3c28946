import type { Collection, Document } from "mongodb";
import type { RateCounts } from "../port/store.js";
import type { CollectionSpec } from "./collections.js";
import type { Time } from "./documents.js";
import { callDriver } from "./driver-call.js";

interface RateCountDocument {
  readonly _id: string;
  /** The tokens in the bucket at the time `at`. */
  readonly tokens: number;
  readonly at: Date;
  /** The tokens that the last call drew. */
  readonly drawn: number;
  /** When the bucket is full again and can be deleted. */
  readonly expires_at: Date;
}

export const rateCountsName = "rate_counts";

export const rateCountCollection: CollectionSpec = {
  name: rateCountsName,
  indexes: [{ key: { expires_at: 1 }, options: { expireAfterSeconds: 0 } }],
  schema: {
    bsonType: "object",
    required: ["_id", "tokens", "at", "drawn", "expires_at"],
    properties: {
      _id: { bsonType: "string" },
      tokens: { bsonType: "number" },
      at: { bsonType: "date" },
      drawn: { bsonType: "number" },
      expires_at: { bsonType: "date" },
    },
  },
};

/** Does not wait for other members or the journal: after a failure, only a few more calls pass. */
const writeConcern = { w: 1, journal: false } as const;

/** The caller has timed out by then. */
const maxTimeMS = 500;

export function createRateCounts(documents: Collection<RateCountDocument>, time: Time): RateCounts {
  return {
    async draw(name, { count, interval, burst }, max, min = 1) {
      const perMillisecond = count / interval;
      const now = time();
      const passed = { $max: [0, { $subtract: [now, { $ifNull: ["$at", now] }] }] };
      const held = { $ifNull: ["$tokens", burst] };
      const refilled = { $add: [held, { $multiply: [passed, perMillisecond] }] };
      const update: Document[] = [
        { $set: { tokens: { $min: [burst, refilled] }, at: now } },
        {
          $set: {
            drawn: {
              $cond: [{ $gte: ["$tokens", min] }, { $min: [max, { $floor: "$tokens" }] }, 0],
            },
          },
        },
        { $set: { tokens: { $subtract: ["$tokens", "$drawn"] } } },
        { $set: { expires_at: { $add: [now, Math.ceil(burst / perMillisecond)] } } },
      ];
      const options = { upsert: true, returnDocument: "after", writeConcern, maxTimeMS } as const;
      const found = await callDriver(() =>
        documents.findOneAndUpdate({ _id: name }, update, options),
      );
      const { drawn = 0, tokens = 0 } = found ?? {};
      const missing = (drawn > 0 ? 1 : min) - tokens;
      return { tokens: drawn, wait: Math.max(1, Math.ceil(missing / perMillisecond)) };
    },
  };
}
