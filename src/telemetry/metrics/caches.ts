import type { CacheCounts } from "../../lib/cache.js";

/** Hits and misses of the caches of this process, which are created in several modules. */
export const cacheCounts = {
  /** Encoded responses. */
  answers: { hits: 0, misses: 0 },
  /** Compiled access rules. */
  rules: { hits: 0, misses: 0 },
  /** Decoded records; MongoDB only. */
  records: { hits: 0, misses: 0 },
} satisfies Record<string, CacheCounts>;
