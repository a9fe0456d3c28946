/** The header, or metadata, by which a caller names a call that it may send again. */
export const idempotencyKeyHeader = "Idempotency-Key";

/** The header, or metadata, that marks an answer that was given before. */
export const replayedHeader = "Idempotent-Replayed";

/** What such a name may be: visible characters, and not too many of them. */
export const idempotencyKeyPattern = /^[!-~]{1,255}$/;
