import { crc32 } from "node:zlib";
import { readBase62, readDigits } from "../lib/base62.js";
import { idFromBytes, isId } from "../lib/uuid.js";
import type { ApplicationType } from "./grants.js";

/**
 * Keys and nonces read `lk_<kind>_<id><secret><check>`. The id is that of the
 * application or session, so that finding it is one read by primary key; the
 * check lets a mistyped key be refused without any read.
 */
export type KeyKind = "prv" | "pub" | "mgt" | "ses" | "non";

export interface ParsedKey {
  readonly kind: KeyKind;
  /** The id of the application or session that the key belongs to. */
  readonly id: string;
}

export const kinds = ["prv", "pub", "mgt", "ses", "non"] as const satisfies readonly KeyKind[];

export const idWidth = 22;

/** Digits that stand for more than 192 random bits. */
export const secretWidth = 33;

export const checkWidth = 6;

export const idStart = "lk_xxx_".length;

export const secretStart = idStart + idWidth;

export const checkStart = secretStart + secretWidth;

export const keyLength = checkStart + checkWidth;

export const kindOfType: Readonly<Record<ApplicationType, KeyKind>> = {
  private: "prv",
  public: "pub",
  management: "mgt",
};

/** The kind of key that an application of this type has. */
export function kindFor(type: ApplicationType): KeyKind {
  return kindOfType[type];
}

/** What may be a key, or one without its beginning: the longest hash that is in use as a name has 40 digits. */
export const keyLike = /lk_|[A-Za-z0-9]{41}/;

/** Whether there may be a key in what a caller calls something, which is then not to be told on. */
export function mayHoldKey(text: string): boolean {
  return keyLike.test(text);
}

export const idBytes = Buffer.alloc(16);

/** Takes a key apart, or answers `undefined` where the text cannot be one. */
export function parseKey(text: string): ParsedKey | undefined {
  if (text.length !== keyLength || !text.startsWith("lk_") || text[idStart - 1] !== "_") {
    return undefined;
  }
  const kind = kindIn(text);
  const isIntact =
    kind !== undefined &&
    readDigits(text, checkStart, keyLength) === crc32(text.slice(0, checkStart)) &&
    readBase62(text, idStart, secretStart, idBytes);
  return isIntact ? { kind, id: idFromBytes(idBytes) } : undefined;
}

/** Whether something in a text looks like a key or a nonce. */
export function holdsKey(text: string): boolean {
  return kinds.some((kind) => text.includes(`lk_${kind}_`));
}

/** The fewest characters of a key that was made elsewhere. */
export const fewestForeign = 16;

/** Whether a word is long enough for a key that was made elsewhere, and does not have the form of our ids. */
export function mayBeForeignKey(word: string): boolean {
  return word.length >= fewestForeign && !isId(word);
}

export function kindIn(text: string): KeyKind | undefined {
  for (const kind of kinds) {
    if (text.startsWith(kind, 3)) {
      return kind;
    }
  }
  return undefined;
}
