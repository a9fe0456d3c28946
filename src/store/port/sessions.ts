import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationStore } from "./applications.js";
import {
  type ApplicationRecord,
  isUnexpired,
  type SessionRecord,
  type SessionWithApplication,
} from "./records.js";

export interface SessionStore {
  /** Finds a session with its application and its authorizer. */
  find(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Finds several sessions. The results are in the order of the ids. */
  findMany(ids: readonly string[]): MaybePromise<readonly (SessionWithApplication | undefined)[]>;

  /** Finds a session that has expired itself or with its application or authorizer, if all are still stored. */
  findExpired(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Lists sessions of a tenant, newest (greatest id) first. Aborts like {@link ApplicationStore.list}. */
  list(query: SessionQuery, signal?: AbortSignal): Promise<SessionPage>;

  /** Counts the open sessions among the newest `limit` that match. Aborts like {@link ApplicationStore.list}. */
  count(filter: SessionFilter, limit: number, signal?: AbortSignal): Promise<SessionCount>;

  /**
   * Returns how many sessions expired since the last call. Each session is
   * counted once, by one process.
   */
  drainExpiredCount(): MaybePromise<number>;
}

/** All given conditions must match. */
export interface SessionFilter {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  /** The id of the application that authorized the session. */
  readonly authorizedBy?: string | undefined;
  readonly authorized?: boolean | undefined;
}

export interface SessionQuery extends SessionFilter {
  readonly size: number;
  /** The id of the last session of the previous page. */
  readonly after?: string | undefined;
}

export interface SessionPage {
  /** Fewer than requested if they are large. */
  readonly items: readonly SessionWithApplication[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
}

export interface SessionCount {
  readonly open: number;
  /** Whether no more sessions match, open or not, than were read. */
  readonly isComplete: boolean;
}

/** The applications that a session depends on: the one that opened it, and the one that authorized it. */
export function applicationIdsOf({
  applicationId,
  authorizedBy,
}: Pick<SessionRecord, "applicationId" | "authorizedBy">): string[] {
  return authorizedBy === undefined ? [applicationId] : [applicationId, authorizedBy];
}

/** The applications that a session depends on, and their epochs when it was opened and authorized. */
type SessionOrigin = Pick<
  SessionRecord,
  "applicationId" | "authorizedBy" | "epoch" | "authorizationEpoch"
>;

interface WithApplications<S extends SessionOrigin>
  extends Omit<SessionWithApplication, "session"> {
  readonly session: S;
}

/** A session with these applications, or `undefined` if one of them does not exist. */
export function withApplications<S extends SessionOrigin>(
  session: S,
  find: (id: string) => ApplicationRecord | undefined,
): WithApplications<S> | undefined {
  const application = find(session.applicationId);
  if (!application || session.authorizedBy === undefined) {
    return application && { session, application };
  }
  const authorizer = find(session.authorizedBy);
  return authorizer && { session, application, authorizer };
}

/** Whether a session was revoked, with one of its applications or by a new epoch of one of them. */
export function isRevoked(found: WithApplications<SessionOrigin> | undefined): boolean {
  return (
    found === undefined ||
    found.session.epoch !== found.application.sessionEpoch ||
    (found.authorizer !== undefined &&
      found.session.authorizationEpoch !== found.authorizer.authorizationEpoch)
  );
}

/** Whether a change of an application revokes sessions that it opened or authorized. */
export function revokesSessions(before: ApplicationRecord, after: ApplicationRecord): boolean {
  return (
    before.sessionEpoch !== after.sessionEpoch ||
    before.authorizationEpoch !== after.authorizationEpoch
  );
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
