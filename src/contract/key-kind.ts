import { alphabet } from "../lib/base62.js";
import type { ApplicationType } from "./grants.js";

/** The second part of a key or nonce: what it belongs to. */
export type KeyKind = "prv" | "pub" | "mgt" | "ses" | "non";

const kindOfType: Readonly<Record<ApplicationType, KeyKind>> = {
  private: "prv",
  public: "pub",
  management: "mgt",
};

/** The kind of key that an application of this type has. */
export function kindFor(type: ApplicationType): KeyKind {
  return kindOfType[type];
}

/** The number of characters that a fingerprint shows of the id. */
export const shownDigits = 4;

/**
 * What may be shown of the keys of an application: `lk_pub_…2tA3`. These are the
 * kind and the last characters of the id, so all its keys have the same one.
 */
export function keyFingerprint(type: ApplicationType, applicationId: string): string {
  const base = BigInt(alphabet.length);
  let rest = BigInt(`0x${applicationId.replaceAll("-", "")}`);
  let shown = "";
  for (let count = 0; count < shownDigits; count++) {
    shown = alphabet[Number(rest % base)] + shown;
    rest /= base;
  }
  return `lk_${kindFor(type)}_…${shown}`;
}
