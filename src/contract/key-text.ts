import { alphabet } from "../lib/base62.js";
import { isId } from "../lib/uuid-text.js";
import type { ApplicationType } from "./grants.js";

/** The second part of a key or nonce: what it belongs to. */
export const keyTypes = ["prv", "pub", "mgt", "ses", "non"] as const;
export type KeyType = (typeof keyTypes)[number];

const byApplicationType: Readonly<Record<ApplicationType, KeyType>> = {
  private: "prv",
  public: "pub",
  management: "mgt",
};

/** The type of the keys that an application of this type has. */
export function keyTypeOf(type: ApplicationType): KeyType {
  return byApplicationType[type];
}

/** The number of characters that a fingerprint shows of the id. */
export const shownDigits = 4;

/**
 * What may be shown of the keys of an application: `lk_pub_…2tA3`. These are the
 * type and the last characters of the id, so all its keys have the same one.
 */
export function keyFingerprint(type: ApplicationType, applicationId: string): string {
  const base = BigInt(alphabet.length);
  let rest = BigInt(`0x${applicationId.replaceAll("-", "")}`);
  let shown = "";
  for (let count = 0; count < shownDigits; count++) {
    shown = alphabet[Number(rest % base)] + shown;
    rest /= base;
  }
  return `lk_${keyTypeOf(type)}_…${shown}`;
}

/** Matches a key, also without its prefix. Shorter hexadecimal hashes, such as SHA-1, do not match. */
const keyLike = /lk_|[A-Za-z0-9]{41}/;

/** Whether a caller's text may contain a key, so that it must not be logged or repeated. */
export function mayContainKey(text: string): boolean {
  return keyLike.test(text);
}

/** The minimum length of an imported key: one that was created by another system. */
export const minImportedKeyLength = 16;

/** Whether a text is long enough for an imported key and is not a UUID. */
export function mayBeImportedKey(word: string): boolean {
  return word.length >= minImportedKeyLength && !isId(word);
}
