import { createHmac, hash, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import {
  checkStart,
  fewestForeign,
  idStart,
  type KeyKind,
  keyLength,
  mayBeForeignKey,
  secretStart,
  secretWidth,
} from "../contract/key-format.js";
import { base, codeOfDigit, writeBase62 } from "../lib/base62.js";
import { drawRandom, idToBytes } from "../lib/uuid.js";

/** Below it every digit is as likely as any other. */
const fairBytes = 256 - (256 % base);

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

/** Keys that were made elsewhere: visible characters, and not what ours begin with. */
const foreignForm = new RegExp(`^(?!lk_)[!-~]{${fewestForeign},200}$`);

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

/** Tells a path, or another word of a request, as it may be told: without a key that was pasted into it. */
export type WithoutSecrets = (text: string) => string;

const ownKey = /(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g;
/** A segment of a path, with what is encoded in it counted as one character. */
const segment = /(?:[^/%]|%[0-9A-Fa-f]{2}|%)+/g;

/**
 * Creates a mask of keys, encoded or not. Keys that were made elsewhere have no
 * form of their own: where those are accepted, every segment that is long enough
 * for one is left out, unless it is a UUID.
 */
export function createWithoutSecrets(foreignKeys: boolean): WithoutSecrets {
  const withoutOwn: WithoutSecrets = (text) => text.replaceAll(ownKey, "…");
  return foreignKeys
    ? (text) => withoutOwn(text.replaceAll(segment, (it) => (mayBeForeignKey(it) ? "…" : it)))
    : withoutOwn;
}
