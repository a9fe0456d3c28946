import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { fillRandom } from "../../lib/bytes.js";

/** A stored response and the fingerprint of its request. */
interface StoredResponse {
  /** The SHA-256 of the request. */
  readonly fingerprint: Uint8Array;
  readonly response: Uint8Array;
}

/** Encrypts responses, which may contain a new key, so that only their caller can read them. */
export interface ResponseSeal {
  seal(response: StoredResponse): Buffer;

  /** Returns `undefined` if the response was sealed with another key or id. */
  open(sealed: Uint8Array): StoredResponse | undefined;
}

const cipher = "aes-256-gcm";
const keySize = 32;
const nonceSize = 12;
const tagSize = 16;
const fingerprintSize = 32;
const idPurpose = "latchkey: the id of a stored response";
const keyPurpose = "latchkey: the sealing of a stored response";

/** The id under which a response is stored: a hash in hex that reveals none of its inputs. */
export function responseId(callerId: string, method: string, idempotencyKey: string): string {
  const parts = joined([idPurpose, callerId, method, idempotencyKey]);
  return createHash("sha256").update(parts).digest("hex");
}

/** Secrets that the caller sends and the service stores only as hashes. */
interface SealSecrets {
  readonly apiKey: string;
  readonly idempotencyKey: string;
}

/**
 * Creates the seal of one response. Stolen data reveals no response, even if
 * the API key is that of a public application, because the Idempotency-Key is
 * part of the secret.
 */
export function createResponseSeal(
  { apiKey, idempotencyKey }: SealSecrets,
  id: string,
): ResponseSeal {
  const secret = joined([apiKey, idempotencyKey]);
  const key = Buffer.from(hkdfSync("sha256", secret, Buffer.from(id, "hex"), keyPurpose, keySize));
  return {
    seal({ fingerprint, response }) {
      const nonce = Buffer.alloc(nonceSize);
      fillRandom(nonce);
      const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagSize });
      const content = [sealing.update(fingerprint), sealing.update(response), sealing.final()];
      return Buffer.concat([nonce, sealing.getAuthTag(), ...content]);
    },

    open(sealed) {
      const nonce = sealed.subarray(0, nonceSize);
      const tag = sealed.subarray(nonceSize, nonceSize + tagSize);
      try {
        const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagSize });
        opening.setAuthTag(tag);
        const content = Buffer.concat([
          opening.update(sealed.subarray(nonceSize + tagSize)),
          opening.final(),
        ]);
        return {
          fingerprint: content.subarray(0, fingerprintSize),
          response: content.subarray(fingerprintSize),
        };
      } catch {
        return undefined;
      }
    },
  };
}

/** Concatenates texts with length prefixes, so that the result is unambiguous. */
function joined(texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const bytes = Buffer.from(text);
      const size = Buffer.allocUnsafe(4);
      size.writeUInt32BE(bytes.length);
      return [size, bytes];
    }),
  );
}
