import { createPublicKey, type KeyObject } from "node:crypto";
import { file, type LoadedFile, type Parser } from "./parsers.js";

/** Public keys by their identifier. */
export type SigningKeys = ReadonlyMap<string, KeyObject>;

/** The path of a file of public keys. */
export const signingKeysFile: Parser<LoadedFile> = (path) => {
  const { content } = file(path);
  parseSigningKeys(content);
  return { path, content };
};

/**
 * Parses public keys in GitHub's JSON format, also those that are not current: reports that they signed may still
 * arrive. Throws if one is not valid, or two have the same identifier.
 */
export function parseSigningKeys(content: Buffer): SigningKeys {
  const items = readItems(content);
  if (items.length === 0) {
    throw new Error(`must be a JSON file with a list "public_keys", as GitHub serves it`);
  }
  const keys = new Map<string, KeyObject>();
  for (const [index, item] of items.entries()) {
    const { key_identifier: id, key } = Object(item);
    if (typeof id !== "string" || id === "" || typeof key !== "string") {
      throw new Error(`has no key_identifier or key in public_keys[${index}]`);
    }
    if (keys.has(id)) {
      throw new Error(`has the key_identifier of another key in public_keys[${index}]`);
    }
    keys.set(id, parseSigningKey(key, index));
  }
  return keys;
}

function readItems(content: Buffer): readonly unknown[] {
  try {
    const { public_keys: items } = JSON.parse(content.toString());
    return Array.isArray(items) ? items : [];
  } catch {
    return [];
  }
}

function parseSigningKey(pem: string, index: number): KeyObject {
  const key = readPublicKey(pem);
  if (key?.asymmetricKeyDetails?.namedCurve !== "prime256v1") {
    throw new Error(`has no PEM public key of the curve P-256 in public_keys[${index}].key`);
  }
  return key;
}

function readPublicKey(pem: string): KeyObject | undefined {
  try {
    return createPublicKey(pem);
  } catch {
    return undefined;
  }
}
