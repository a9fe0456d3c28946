import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { crc32 } from "node:zlib";
import { decodeBase62, encodeBase62 } from "./base62.js";
import { idFromBytes, idToBytes } from "./ids.js";
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

const kinds: readonly string[] = ["prv", "pub", "mgt", "ses", "non"] satisfies KeyKind[];
const idWidth = 22;
const secretBytes = 24;
const secretWidth = 33;
const checkWidth = 6;
const idStart = "lk_xxx_".length;
const checkStart = idStart + idWidth + secretWidth;
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

/** Makes a key with a new secret. It is the only copy: keep the hash. */
export function makeKey(kind: KeyKind, id: string): string {
  const body =
    `lk_${kind}_${encodeBase62(idToBytes(id), idWidth)}` +
    encodeBase62(randomBytes(secretBytes), secretWidth);
  return body + checkOf(body);
}

/** Takes a key apart, or answers `undefined` where the text cannot be one. */
export function parseKey(text: string): ParsedKey | undefined {
  if (text.length !== keyLength || !text.startsWith("lk_") || text[idStart - 1] !== "_") {
    return undefined;
  }
  const kind = text.slice(3, idStart - 1);
  if (!kinds.includes(kind) || text.slice(checkStart) !== checkOf(text.slice(0, checkStart))) {
    return undefined;
  }
  const id = decodeBase62(text.slice(idStart, idStart + idWidth), 16);
  return id && { kind: kind as KeyKind, id: idFromBytes(id) };
}

function checkOf(body: string): string {
  const check = Buffer.allocUnsafe(4);
  check.writeUInt32BE(crc32(body));
  return encodeBase62(check, checkWidth);
}

/** Hashes keys for storage and compares them with what is stored. */
export interface Keyring {
  /** The hash to store. */
  hash(key: string): Uint8Array;

  /** Every hash that the key may be stored under, the one of {@link hash} first. */
  hashes(key: string): Uint8Array[];

  /** Whether the key is the one that was hashed, in a time that tells nothing. */
  matches(key: string, stored: Uint8Array): boolean;
}

/**
 * Creates a keyring. A hash is the HMAC-SHA-256 of the key under a pepper, or
 * its bare SHA-256 where the pepper is the empty text. New hashes use the
 * first pepper; those made with any other in the list still verify, so that a
 * pepper can be brought in and rotated.
 */
export function createKeyring(peppers: readonly [string, ...string[]] = [""]): Keyring {
  const [first] = peppers;
  return {
    hash: (key) => hashWith(first, key),
    hashes: (key) => peppers.map((pepper) => hashWith(pepper, key)),
    matches: (key, stored) =>
      peppers.some((pepper) => {
        const hash = hashWith(pepper, key);
        return hash.length === stored.length && timingSafeEqual(hash, stored);
      }),
  };
}

function hashWith(pepper: string, key: string): Buffer {
  const hasher = pepper === "" ? createHash("sha256") : createHmac("sha256", pepper);
  return hasher.update(key).digest();
}
