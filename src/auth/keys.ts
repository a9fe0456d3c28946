import { createHmac, hash, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import {
  checkStart,
  idStart,
  keyLength,
  secretStart,
  secretWidth,
} from "../contract/key-format.js";
import { type KeyType, mayBeImportedKey, minImportedKeyLength } from "../contract/key-text.js";
import { base, digitCharCode, writeBase62 } from "../lib/base62.js";
import { fillRandom } from "../lib/bytes.js";
import { idToBytes } from "../lib/uuid.js";

/** Bytes below this limit map evenly to digits. */
const unbiasedLimit = 256 - (256 % base);

/** Creates a key with a new secret. Store only its hash. */
export function generateKey(type: KeyType, id: string): string {
  return formatKey(type, id, generateSecret());
}

/** The key of an application or session with a secret. */
export function formatKey(type: KeyType, id: string, secret: Uint8Array): string {
  const key = Buffer.allocUnsafe(keyLength);
  key.write(`lk_${type}_`, "latin1");
  writeBase62(idToBytes(id), key, idStart, secretStart);
  key.set(secret, secretStart);
  const check = Buffer.allocUnsafe(4);
  check.writeUInt32BE(crc32(key.subarray(0, checkStart)));
  writeBase62(check, key, checkStart, keyLength);
  return key.toString("latin1");
}

const randomPool = Buffer.alloc(secretWidth);

/** The random digits of a new key. Rejection sampling skips bytes that would bias them. */
export function generateSecret(): Uint8Array {
  const secret = new Uint8Array(secretWidth);
  let position = 0;
  while (position < secretWidth) {
    fillRandom(randomPool);
    for (let index = 0; index < randomPool.length && position < secretWidth; index++) {
      const byte = randomPool[index] as number;
      if (byte < unbiasedLimit) {
        secret[position++] = digitCharCode(byte % base);
      }
    }
  }
  randomPool.fill(0);
  return secret;
}

/** Imported keys: visible ASCII characters without our prefix. */
const importedKeyPattern = new RegExp(`^(?!lk_)[!-~]{${minImportedKeyLength},200}$`);

/** Hashes keys for storage and verifies them against stored hashes. */
export interface Keyring {
  /** The hash to store. */
  hash(key: string): Uint8Array;

  /** The hashes of the key under every pepper, the one of {@link hash} first. */
  hashes(key: string): Uint8Array[];

  /** Whether the key has the stored hash, in constant time. */
  matches(key: string, stored: Uint8Array): boolean;

  /** Whether imported keys are enabled and the text may be one. */
  acceptsImported(text: string): boolean;

  /** Finds the candidate with the hash of the key. The timing reveals at most its position. */
  find<K extends { readonly hash: Uint8Array }>(key: string, among: readonly K[]): K | undefined;
}

/**
 * Creates a keyring. A hash is the HMAC-SHA-256 of the key under a pepper, or
 * its plain SHA-256 if the pepper is empty. New hashes use the first pepper.
 * The others still verify, so that peppers can be rotated.
 */
export function createKeyring(
  peppers: readonly [string, ...string[]] = [""],
  { importedKeys = false } = {},
): Keyring {
  const [first] = peppers;
  return {
    hash: (key) => hashWith(first, key),
    hashes: (key) => peppers.map((pepper) => hashWith(pepper, key)),
    matches: (key, stored) => peppers.some((pepper) => isHashOf(pepper, key, stored)),
    acceptsImported: (text) => importedKeys && importedKeyPattern.test(text),
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

/** Returns the hash as a Latin-1 string, which costs less than half of a new buffer. */
function hashText(pepper: string, key: string): string {
  return pepper === ""
    ? hash("sha256", key, "binary")
    : createHmac("sha256", pepper).update(key).digest("binary");
}

/** Redacts keys in a path or another text of a request. */
export type RedactKeys = (text: string) => string;

/** Any long alphanumeric run, percent-encoded or not. */
const keyLikeText = /(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g;
/** A path segment. A percent-encoded byte counts as one character. */
const segment = /(?:[^/%]|%[0-9A-Fa-f]{2}|%)+/g;

/**
 * Creates a function that redacts keys, percent-encoded or not. Imported keys
 * have no fixed format: if they are enabled, every segment that is long enough
 * is redacted unless it is a UUID.
 */
export function createKeyRedactor(importedKeys: boolean): RedactKeys {
  const redactKeyLikeText: RedactKeys = (text) => text.replaceAll(keyLikeText, "…");
  return importedKeys
    ? (text) =>
        redactKeyLikeText(text.replaceAll(segment, (it) => (mayBeImportedKey(it) ? "…" : it)))
    : redactKeyLikeText;
}
