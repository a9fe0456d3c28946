import { createHash, hkdfSync } from "node:crypto";
import { keySize, open, seal } from "../lib/aead.js";

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

const fingerprintSize = 32;
const idPurpose = "latchkey: the id of a stored response";
const keyPurpose = "latchkey: the sealing of a stored response";

/** The id under which a response is stored: a hash in hex that reveals none of its inputs. */
export function responseId(callerId: string, method: string, idempotencyKey: string): string {
  const parts = withLengthPrefixes([idPurpose, callerId, method, idempotencyKey]);
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
  const secret = withLengthPrefixes([apiKey, idempotencyKey]);
  const key = Buffer.from(hkdfSync("sha256", secret, Buffer.from(id, "hex"), keyPurpose, keySize));
  return {
    seal: ({ fingerprint, response }) => seal(key, [fingerprint, response]),

    open(sealed) {
      const content = open(key, sealed);
      return (
        content && {
          fingerprint: content.subarray(0, fingerprintSize),
          response: content.subarray(fingerprintSize),
        }
      );
    },
  };
}

/** Concatenates texts, each after its length: other texts never give the same result. */
function withLengthPrefixes(texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.flatMap((text) => {
      const bytes = Buffer.from(text);
      const size = Buffer.allocUnsafe(4);
      size.writeUInt32BE(bytes.length);
      return [size, bytes];
    }),
  );
}
