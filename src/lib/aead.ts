import { createCipheriv, createDecipheriv } from "node:crypto";
import { fillRandom } from "./bytes.js";

/** Authenticated encryption with AES-256-GCM. The result consists of a random nonce, the tag and the ciphertext. */

const algorithm = "aes-256-gcm";
const nonceSize = 12;
const tagSize = 16;

const emptyData = Buffer.alloc(0);

/** The size of an encryption key in bytes. */
export const keySize = 32;

/** Encrypts the concatenated parts. The associated data is authenticated but not included. */
export function seal(
  key: Buffer,
  parts: readonly Uint8Array[],
  associatedData = emptyData,
): Buffer {
  const nonce = Buffer.alloc(nonceSize);
  fillRandom(nonce);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagSize });
  cipher.setAAD(associatedData);
  const ciphertext = [...parts.map((part) => cipher.update(part)), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...ciphertext]);
}

/** Returns `undefined` if the data was encrypted with another key or associated data, or was altered. */
export function open(
  key: Buffer,
  sealed: Uint8Array,
  associatedData = emptyData,
): Buffer | undefined {
  const nonce = sealed.subarray(0, nonceSize);
  const tag = sealed.subarray(nonceSize, nonceSize + tagSize);
  try {
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagSize });
    decipher.setAAD(associatedData).setAuthTag(tag);
    const opened = decipher.update(sealed.subarray(nonceSize + tagSize));
    return Buffer.concat([opened, decipher.final()]);
  } catch {
    return undefined;
  }
}
