import type { Collection } from "mongodb";
import type { Awaitable } from "../../awaitable.js";
import type { SessionStore } from "../store.js";
import type { SessionDocument } from "./documents.js";
import type { MarkDocument } from "./ends.js";
import { placeBefore } from "./find-ends.js";
import { limits, reach } from "./reach.js";
import { byExpiry } from "./schema.js";

export interface ExpiredSessionsOptions {
  readonly documents: Collection<SessionDocument>;
  readonly marks: Collection<MarkDocument>;
  /** The store's clock. */
  readonly now: () => Awaitable<number>;
}

const _id = "sessions-expired";

/**
 * Counts by a mark that all instances share: whoever moves it counts what
 * expired since it was moved before. It is moved first, so that none counts
 * twice; what the one that moved it fails to count is lost.
 */
export function createTakeExpired(options: ExpiredSessionsOptions): SessionStore["takeExpired"] {
  const { documents, marks, now } = options;
  return async () => {
    const { moment, ...place } = placeBefore(await now());
    const mark = await reach(() =>
      marks.findOneAndUpdate(
        { _id },
        { $max: { moment }, $setOnInsert: place },
        { upsert: true, returnDocument: "before", ...limits },
      ),
    );
    if (!mark || mark.moment >= moment) {
      return 0;
    }
    const since = { expires_at: { $gt: mark.moment, $lte: moment } };
    return reach(() => documents.countDocuments(since, { hint: byExpiry, ...limits }));
  };
}
