/** The header that carries the key, where the operator chose no other. */
export const defaultKeyHeader = "SVC-API-KEY";
