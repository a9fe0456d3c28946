import { crc32 } from "node:zlib";
import { readBase62, readDigits } from "../lib/base62.js";
import { idFromBytes } from "../lib/uuid.js";
import { type KeyType, keyTypes } from "./key-text.js";

/**
 * Keys and nonces have the form `lk_<type>_<id><secret><check>`. The id is the
 * primary key of the application or session. The check is a CRC-32, which
 * detects a mistyped key without a read of the store.
 */
export interface ParsedKey {
  readonly type: KeyType;
  /** The id of the application or session that the key belongs to. */
  readonly id: string;
}

const idWidth = 22;

/** 33 base-62 digits hold more than 192 random bits. */
export const secretWidth = 33;

const checkWidth = 6;

export const idStart = "lk_xxx_".length;

export const secretStart = idStart + idWidth;

export const checkStart = secretStart + secretWidth;

export const keyLength = checkStart + checkWidth;

const idBytes = Buffer.alloc(16);

/** Parses a key. Returns `undefined` if the text is not a well-formed key. */
export function parseKey(text: string): ParsedKey | undefined {
  if (text.length !== keyLength || !text.startsWith("lk_") || text[idStart - 1] !== "_") {
    return undefined;
  }
  const type = typeIn(text);
  const isIntact =
    type !== undefined &&
    readDigits(text, checkStart, keyLength) === crc32(text.slice(0, checkStart)) &&
    readBase62(text, idStart, secretStart, idBytes);
  return isIntact ? { type, id: idFromBytes(idBytes) } : undefined;
}

/** Whether a text contains the prefix of a key or nonce. */
export function containsKeyPrefix(text: string): boolean {
  return keyTypes.some((type) => text.includes(`lk_${type}_`));
}

function typeIn(text: string): KeyType | undefined {
  for (const type of keyTypes) {
    if (text.startsWith(type, 3)) {
      return type;
    }
  }
  return undefined;
}
