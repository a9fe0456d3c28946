import { createHash } from "node:crypto";
import { idFromBytes, idToBytes } from "../ids.js";

const idSize = 16;
const sealSize = 4;

/**
 * The place after an application in the lists of a tenant, as a text that
 * callers only hand back. The seal lets a damaged one, or one of another
 * tenant, be told from a good one; there is nothing to gain by forging it.
 */
export function encodeCursor(tenantId: string, id: string): string {
  return Buffer.concat([idToBytes(id), sealOf(tenantId, id)]).toString("base64url");
}

/** The id in a cursor, or `undefined` where the text is no cursor of this tenant. */
export function decodeCursor(tenantId: string, text: string): string | undefined {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length !== idSize + sealSize || bytes.toString("base64url") !== text) {
    return undefined;
  }
  const id = idFromBytes(bytes.subarray(0, idSize));
  return sealOf(tenantId, id).equals(bytes.subarray(idSize)) ? id : undefined;
}

function sealOf(tenantId: string, id: string): Buffer {
  return createHash("sha256").update(`${tenantId}/${id}`).digest().subarray(0, sealSize);
}
