/** The default header for the key. Operators can configure another. */
export const defaultKeyHeader = "SVC-API-KEY";

/** The header for the key of a gateway, as in the access options of its methods. */
export const gatewayKeyHeader = "SVC-GUARD-KEY";

/** The header with the tokens that are left of the caller's rate limit. */
export const rateLimitHeader = "RateLimit";

/** The header with the rate limit of the caller. */
export const rateLimitPolicyHeader = "RateLimit-Policy";

/** The header or metadata that makes a call safe to retry. */
export const idempotencyKeyHeader = "Idempotency-Key";

/** The header or metadata that marks a replayed response. */
export const replayedHeader = "Idempotent-Replayed";

/** Valid idempotency keys: 1 to 255 visible ASCII characters, bare or as a string of RFC 8941 in double quotes. */
export const idempotencyKeyPattern = /^(?:[!#-~][!-~]{0,254}|"(?:[!#-[\]-~]|\\["\\]){1,255}")$/;

/** A strong entity tag of visible ASCII characters, or `*` for any version. */
export const entityTagPattern = /^(?:\*|"([!#-~]+)")$/;
