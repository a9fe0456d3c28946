/** The header that carries the key, where the operator chose no other. */
export const defaultKeyHeader = "SVC-API-KEY";

/** The header, or metadata, by which a caller names a call that it may send again. */
export const idempotencyKeyHeader = "Idempotency-Key";

/** The header, or metadata, that marks an answer that was given before. */
export const replayedHeader = "Idempotent-Replayed";

/** What such a name may be: visible characters, and not too many of them. */
export const idempotencyKeyPattern = /^[!-~]{1,255}$/;

/** A strong entity tag of visible characters, or the star that stands for whatever there is. */
export const entityTagPattern = /^(?:\*|"([!#-~]+)")$/;
