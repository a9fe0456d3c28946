import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { drawRandom } from "../../lib/uuid.js";

/** An answer that is kept, and what it was the answer to. */
export interface StoredResponse {
  /** The SHA-256 of the request. */
  readonly fingerprint: Uint8Array;
  readonly response: Uint8Array;
}

/** Closes answers so that only the one who was given them can read them: they may tell a new key. */
export interface ResponseSeal {
  seal(kept: StoredResponse): Buffer;

  /** Answers `undefined` where it was not sealed with the same key under the same id. */
  open(sealed: Uint8Array): StoredResponse | undefined;
}

const cipher = "aes-256-gcm";
const keySize = 32;
const nonceSize = 12;
const tagSize = 16;
const fingerprintSize = 32;
const idPurpose = "latchkey: the id of an answer";
const keyPurpose = "latchkey: the sealing of an answer";

/** Under which id an answer is kept, in hexadecimal digits. Nothing of what it is made of can be read from it. */
export function responseId(callerId: string, method: string, idempotencyKey: string): string {
  const parts = joined([idPurpose, callerId, method, idempotencyKey]);
  return createHash("sha256").update(parts).digest("hex");
}

/** What an answer is sealed with: what its caller sends, and the service keeps as hashes alone. */
export interface SealSecrets {
  readonly apiKey: string;
  readonly idempotencyKey: string;
}

/**
 * Creates the seal of the answer with an id. Whoever gets hold of the data can
 * open nothing, also where the API key is that of a public application, which
 * every visitor of a page knows.
 */
export function createResponseSeal({ apiKey, idempotencyKey }: SealSecrets, id: string): ResponseSeal {
  const secret = joined([apiKey, idempotencyKey]);
  const key = Buffer.from(hkdfSync("sha256", secret, Buffer.from(id, "hex"), keyPurpose, keySize));
  return {
    seal({ fingerprint, response }) {
      const nonce = Buffer.alloc(nonceSize);
      drawRandom(nonce);
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

/** Texts in a row, each after its length, so that no other texts look the same. */
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
