import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { type FieldViolation, invalidRequest } from "./errors.js";

/**
 * Seals places in a list or a feed into texts for callers. A sealed place
 * cannot be read, which would tell how much happens in other tenants, nor made
 * up, and opens only for the tenant and the use that it was sealed for.
 */
export interface SealedPlaces {
  seal(tenantId: string, place: string): string;

  /** Answers the place, or throws what is wrong with the text. */
  open(tenantId: string, text: string): string;
}

const algorithm = "aes-256-gcm";
const nonceSize = 12;
const tagSize = 16;
/** Places are made equally long, or multiples of it: how many digits a number has would tell how large it is. */
const placeSize = 48;
const padding = "\0";

/** Creates places that are sealed by a secret. A text that is none of them is refused in these words. */
export function createSealedPlaces(secret: string, refusal: FieldViolation): SealedPlaces {
  const key = createHash("sha256").update(secret).digest();

  function unseal(tenantId: string, sealed: Buffer): string {
    const nonce = sealed.subarray(0, nonceSize);
    const tag = sealed.subarray(nonceSize, nonceSize + tagSize);
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagSize });
    decipher.setAAD(Buffer.from(tenantId)).setAuthTag(tag);
    const padded = decipher.update(sealed.subarray(nonceSize + tagSize));
    const [place = ""] = Buffer.concat([padded, decipher.final()]).toString().split(padding, 1);
    return place;
  }

  return {
    seal(tenantId, place) {
      const parts = Math.floor(place.length / placeSize) + 1;
      const padded = place.padEnd(parts * placeSize, padding);
      const nonce = randomBytes(nonceSize);
      const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagSize });
      cipher.setAAD(Buffer.from(tenantId));
      const sealed = Buffer.concat([cipher.update(padded), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
    },

    open(tenantId, text) {
      try {
        const sealed = Buffer.from(text, "base64url");
        if (sealed.toString("base64url") !== text) {
          throw new Error("there is more in it than a sealed place");
        }
        return unseal(tenantId, sealed);
      } catch {
        throw invalidRequest(refusal);
      }
    },
  };
}
