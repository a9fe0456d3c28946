import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "./records.js";

/** The applications that a session depends on: the one that opened it, and the one that authorized it. */
export function applicationIdsOf({
  applicationId,
  authorizedBy,
}: Pick<SessionRecord, "applicationId" | "authorizedBy">): string[] {
  return authorizedBy === undefined ? [applicationId] : [applicationId, authorizedBy];
}

/** A session with these applications, or `undefined` if one of them does not exist. */
export function withApplications(
  session: SessionRecord,
  find: (id: string) => ApplicationRecord | undefined,
): SessionWithApplication | undefined {
  const application = find(session.applicationId);
  if (!application || session.authorizedBy === undefined) {
    return application && { session, application };
  }
  const authorizer = find(session.authorizedBy);
  return authorizer && { session, application, authorizer };
}

/** Whether a session was revoked, with one of its applications or by a new session epoch. */
export function isRevoked(found: SessionWithApplication | undefined): boolean {
  return found === undefined || found.session.epoch !== found.application.sessionEpoch;
}
