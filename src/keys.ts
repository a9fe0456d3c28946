import { createHmac, hash, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import { base, codeOfDigit, readBase62, readDigits, writeBase62 } from "./base62.js";
import { idFromBytes, idToBytes, isId } from "./ids.js";
import { drawRandom } from "./random.js";
import type { ApplicationType } from "./store/store.js";

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

const kinds = ["prv", "pub", "mgt", "ses", "non"] as const satisfies readonly KeyKind[];
const idWidth = 22;
/** Digits that stand for more than 192 random bits. */
const secretWidth = 33;
const checkWidth = 6;
/** Below it every digit is as likely as any other. */
const fairBytes = 256 - (256 % base);
const idStart = "lk_xxx_".length;
const secretStart = idStart + idWidth;
const checkStart = secretStart + secretWidth;
const keyLength = checkStart + checkWidth;

const kindOfType: Readonly<Record<ApplicationType, KeyKind>> = {
  private: "prv",
  public: "pub",
  management: "mgt",
};

/** The kind of key that an application of this type has. */
export function kindFor(type: ApplicationType): KeyKind {
  return kindOfType[type];
}

/** What may be a key, or one without its beginning: the longest hash that is in use as a name has 40 digits. */
const keyLike = /lk_|[A-Za-z0-9]{41}/;

/** Whether there may be a key in what a caller calls something, which is then not to be told on. */
export function mayHoldKey(text: string): boolean {
  return keyLike.test(text);
}

/** Makes a key with a new secret. It is the only copy: keep the hash. */
export function makeKey(kind: KeyKind, id: string): string {
  const key = Buffer.allocUnsafe(keyLength);
  key.write(`lk_${kind}_`, "latin1");
  writeBase62(idToBytes(id), key, idStart, secretStart);
  writeSecret(key);
  const check = Buffer.allocUnsafe(4);
  check.writeUInt32BE(crc32(key.subarray(0, checkStart)));
  writeBase62(check, key, checkStart, keyLength);
  return key.toString("latin1");
}

const noise = Buffer.alloc(secretWidth);

/** Draws digit by digit. Bytes that would make some digits likelier than others are passed over. */
function writeSecret(key: Buffer): void {
  let place = secretStart;
  while (place < checkStart) {
    drawRandom(noise);
    for (let at = 0; at < noise.length && place < checkStart; at++) {
      const byte = noise[at] as number;
      if (byte < fairBytes) {
        key[place++] = codeOfDigit(byte % base);
      }
    }
  }
  noise.fill(0);
}

const idBytes = Buffer.alloc(16);

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
const fewestForeign = 16;

/** Keys that were made elsewhere: visible characters, and not what ours begin with. */
const foreignForm = new RegExp(`^(?!lk_)[!-~]{${fewestForeign},200}$`);

/** Whether a word is long enough for a key that was made elsewhere, and does not have the form of our ids. */
export function mayBeForeignKey(word: string): boolean {
  return word.length >= fewestForeign && !isId(word);
}

function kindIn(text: string): KeyKind | undefined {
  for (const kind of kinds) {
    if (text.startsWith(kind, 3)) {
      return kind;
    }
  }
  return undefined;
}

/** Hashes keys for storage and compares them with what is stored. */
export interface Keyring {
  /** The hash to store. */
  hash(key: string): Uint8Array;

  /** Every hash that the key may be stored under, the one of {@link hash} first. */
  hashes(key: string): Uint8Array[];

  /** Whether the key is the one that was hashed, in a time that tells nothing. */
  matches(key: string, stored: Uint8Array): boolean;

  /** Whether a text may be a key that was made elsewhere, where those are accepted. */
  acceptsForeign(text: string): boolean;

  /** Finds what has the hash of the key, in a time that tells at most which it is. */
  find<K extends { readonly hash: Uint8Array }>(key: string, among: readonly K[]): K | undefined;
}

/**
 * Creates a keyring. A hash is the HMAC-SHA-256 of the key under a pepper, or
 * its bare SHA-256 where the pepper is the empty text. New hashes use the
 * first pepper; those made with any other in the list still verify, so that a
 * pepper can be brought in and rotated.
 */
export function createKeyring(
  peppers: readonly [string, ...string[]] = [""],
  { foreignKeys = false } = {},
): Keyring {
  const [first] = peppers;
  return {
    hash: (key) => hashWith(first, key),
    hashes: (key) => peppers.map((pepper) => hashWith(pepper, key)),
    matches: (key, stored) => peppers.some((pepper) => isHashOf(pepper, key, stored)),
    acceptsForeign: (text) => foreignKeys && foreignForm.test(text),
    find(key, among) {
      for (const pepper of peppers) {
        candidate.write(hashText(pepper, key), "latin1");
        for (const one of among) {
          if (isCandidate(one.hash)) {
            return one;
          }
        }
      }
      return undefined;
    },
  };
}

function hashWith(pepper: string, key: string): Buffer {
  return Buffer.from(hashText(pepper, key), "latin1");
}

const hashSize = 32;
const candidate = Buffer.alloc(hashSize);

function isHashOf(pepper: string, key: string, stored: Uint8Array): boolean {
  candidate.write(hashText(pepper, key), "latin1");
  return isCandidate(stored);
}

function isCandidate(stored: Uint8Array): boolean {
  return stored.length === hashSize && timingSafeEqual(candidate, stored);
}

/** A hash as a text of one byte a letter, which costs less than half of a buffer of its own. */
function hashText(pepper: string, key: string): string {
  return pepper === ""
    ? hash("sha256", key, "binary")
    : createHmac("sha256", pepper).update(key).digest("binary");
}
