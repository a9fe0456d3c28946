import type { SessionWithApplication } from "../port/records.js";
import { isRevoked } from "../port/sessions.js";

/** Whether a record exists and has not expired. */
export function isUnexpired<R extends { readonly expiresAt?: number | undefined }>(
  record: R | undefined,
  now: number,
): record is R {
  if (record === undefined) {
    return false;
  }
  const { expiresAt } = record;
  return expiresAt === undefined || now < expiresAt;
}

/** Whether a session is unexpired and not revoked. It expires with its application and with its authorizer. */
export function isSessionValid(found: SessionWithApplication | undefined, now: number): boolean {
  return (
    found !== undefined &&
    isUnexpired(found.session, now) &&
    isUnexpired(found.application, now) &&
    (found.authorizer === undefined || isUnexpired(found.authorizer, now)) &&
    !isRevoked(found)
  );
}
