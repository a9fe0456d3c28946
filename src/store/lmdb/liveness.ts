import type { SessionWithApplication } from "../port/records.js";
import { isRevoked } from "../port/sessions.js";

/** Whether a record is there at a moment. */
export function isAlive<R extends { readonly expiresAt?: number | undefined }>(
  record: R | undefined,
  now: number,
): record is R {
  if (record === undefined) {
    return false;
  }
  const { expiresAt } = record;
  return expiresAt === undefined || now < expiresAt;
}

/** Whether a session is there at a moment: it ends with its application and with its authorizer. */
export function isSessionThere(found: SessionWithApplication | undefined, now: number): boolean {
  return (
    found !== undefined &&
    isAlive(found.session, now) &&
    isAlive(found.application, now) &&
    (found.authorizer === undefined || isAlive(found.authorizer, now)) &&
    !isRevoked(found)
  );
}
