import type { ApplicationRecord, SessionRecord } from "../store.js";

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

/** Whether a session is there at a moment: it ends with its application. */
export function isSessionThere(
  session: SessionRecord,
  application: ApplicationRecord | undefined,
  now: number,
): boolean {
  return isAlive(session, now) && isAlive(application, now) && !isRevoked(session, application);
}

/** Whether a session was revoked: with its application, or with all that were opened before. */
export function isRevoked(
  session: SessionRecord,
  application: ApplicationRecord | undefined,
): boolean {
  return session.epoch !== application?.sessionEpoch;
}
