import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { invalidRequest } from "../errors.js";

/**
 * Seals places in the change feed into tokens for callers. A sealed place
 * cannot be read, which would tell how much happens in other tenants, nor made
 * up, and opens only for the tenant and the data that it was sealed for.
 */
export interface ResumeTokens {
  seal(tenantId: string, place: string): string;

  /** Answers the place, or throws what is wrong with the token. */
  open(tenantId: string, token: string): string;
}

const algorithm = "aes-256-gcm";
const nonceSize = 12;
const tagSize = 16;
/** Positions are made equally long: how many digits a number has would tell how large it is. */
const positionSize = 48;
const padding = "\0";

/** Creates tokens of the data with this id, which all instances know and no caller does. */
export function createResumeTokens(storeId: string): ResumeTokens {
  const secret = createHash("sha256").update(`latchkey resume token ${storeId}`).digest();

  function unseal(tenantId: string, sealed: Buffer): string {
    const nonce = sealed.subarray(0, nonceSize);
    const tag = sealed.subarray(nonceSize, nonceSize + tagSize);
    const decipher = createDecipheriv(algorithm, secret, nonce, { authTagLength: tagSize });
    decipher.setAAD(Buffer.from(tenantId)).setAuthTag(tag);
    const position = decipher.update(sealed.subarray(nonceSize + tagSize));
    const [place = ""] = Buffer.concat([position, decipher.final()]).toString().split(padding, 1);
    return place;
  }

  return {
    seal(tenantId, place) {
      const position = place.padEnd(positionSize, padding);
      const nonce = randomBytes(nonceSize);
      const cipher = createCipheriv(algorithm, secret, nonce, { authTagLength: tagSize });
      cipher.setAAD(Buffer.from(tenantId));
      const sealed = Buffer.concat([cipher.update(position), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64url");
    },

    open(tenantId, token) {
      try {
        const sealed = Buffer.from(token, "base64url");
        if (sealed.toString("base64url") !== token) {
          throw new Error("there is more in it than a token");
        }
        return unseal(tenantId, sealed);
      } catch {
        throw invalidRequest({
          field: "resume_token",
          message:
            "is not one of this service and tenant, or was changed: " +
            "pass the resume_token of an earlier message, or none to watch from now",
        });
      }
    },
  };
}
