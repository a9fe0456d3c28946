import { type Grants, holds } from "../contract/grants.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../store/port/records.js";

/** The owner of the key of a call. */
export interface Caller {
  /** The application of the key, or the one that opened the session. */
  readonly application: ApplicationRecord;
  readonly session?: SessionRecord | undefined;
  /** The application that authorized the session. The session is revoked with it. */
  readonly authorizer?: ApplicationRecord | undefined;
  /** The authorizer, if it limits what the session may do. */
  readonly boundary?: ApplicationRecord | undefined;
  /** The key of the application. Absent for sessions. */
  readonly key?: KeyRecord | undefined;
}

/** The grants of the caller's key. A session has none until it is authorized. */
export function grantsOf({ application, session }: Caller): Grants {
  return session ?? application;
}

/** When the caller's key expires. A session never outlives its application or its authorizer. */
export function expiryOf({ application, session, authorizer, key }: Caller): number | undefined {
  const expiry = Math.min(
    application.expiresAt ?? Number.POSITIVE_INFINITY,
    authorizer?.expiresAt ?? Number.POSITIVE_INFINITY,
    (session ?? key)?.expiresAt ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(expiry) ? expiry : undefined;
}

/** The grants that limit what a caller may do: its own, and for a session also those of its authorizer. */
export function limitsOf(caller: Caller): Grants[] {
  const { boundary } = caller;
  return boundary ? [grantsOf(caller), boundary] : [grantsOf(caller)];
}

/** Whether a caller holds a permission. For a session, its authorizer must hold it too. */
export function callerHolds(caller: Caller, permission: string): boolean {
  const { boundary } = caller;
  return holds(grantsOf(caller), permission) && (!boundary || holds(boundary, permission));
}
