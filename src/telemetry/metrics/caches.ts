import type { CacheCounts } from "../../lib/cache.js";

/** What the caches of this process did. They are made in many places, and one process has one memory. */
export const cacheCounts = {
  /** Answers as they are sent. */
  answers: { hits: 0, misses: 0 },
  /** Rules, compiled. */
  rules: { hits: 0, misses: 0 },
  /** Records, decoded; MongoDB only. */
  records: { hits: 0, misses: 0 },
} satisfies Record<string, CacheCounts>;
