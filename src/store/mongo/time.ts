import type { Document } from "mongodb";
import type { Clock } from "../port/store.js";

/** The present moment, as MongoDB's expressions take it. */
export type Time = () => Date | "$$NOW";

/** One clock for all instances, however theirs may differ. */
export const databaseTime: Time = () => "$$NOW";

export const timeOf =
  (clock: Clock): Time =>
  () =>
    new Date(clock());

/** The last moment that a date can tell. */
export const endOfTime = new Date(8.64e15);

/** Matches what has not expired; TTL indexes sweep too late to be relied on. */
export const alive = (time: Time): Document => ({
  $expr: { $gt: [{ $ifNull: ["$expires_at", endOfTime] }, time()] },
});

/** Matches the same, in such a way that the TTL index finds one among many that have expired. */
export const someAlive = (time: Time): Document => ({
  $or: [
    { expires_at: null },
    { expires_at: { $type: "date" }, $expr: { $gt: ["$expires_at", time()] } },
  ],
});

/** Matches what has expired but is not yet swept, in such a way that the TTL index finds it. */
export const expired = (time: Time): Document => ({
  expires_at: { $type: "date" },
  $expr: { $lte: ["$expires_at", time()] },
});
