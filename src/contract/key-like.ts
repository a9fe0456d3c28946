/** Matches a key, also without its prefix. Shorter hexadecimal hashes, such as SHA-1, do not match. */
const keyLike = /lk_|[A-Za-z0-9]{41}/;

/** Whether a caller's text may contain a key, so that it must not be logged or repeated. */
export function mayContainKey(text: string): boolean {
  return keyLike.test(text);
}

/** The minimum length of a foreign key: one that was created by another system. */
export const minForeignKeyLength = 16;
