import { isDeepStrictEqual } from "node:util";
import type { Caller } from "./caller.js";
import type { ApplicationRecord, Grants, KeyRecord } from "./store/store.js";
import { CallerChanged, type CallerRecords, type ChangeCaller } from "./store/trail.js";

/** The caller of a change as it was decided on, for the store to compare with when it writes the change. */
export function changeCallerOf(caller: Caller): ChangeCaller {
  const { application, session } = caller;
  return {
    applicationId: application.id,
    sessionId: session?.id,
    authorizerId: session?.authorizedBy,
    check(found, now) {
      if (!found || !hasSameAuthority(caller, found, now)) {
        throw new CallerChanged("The caller of the change has other rights now.");
      }
    },
  };
}

/** Whether records give a caller's key the rights that it had before. */
function hasSameAuthority(before: Caller, found: CallerRecords, now: number): boolean {
  return (
    isSameApplication(before.application, found.application) &&
    (before.key === undefined || isStillKey(before.key, found.application, now)) &&
    (before.session === undefined ||
      (before.session.authorizedBy === found.session?.authorizedBy &&
        hasSameGrants(before.session, found.session))) &&
    (before.authorizer === undefined ||
      (found.authorizer !== undefined && isSameApplication(before.authorizer, found.authorizer)))
  );
}

function isSameApplication(before: ApplicationRecord, now: ApplicationRecord): boolean {
  return (
    before.version === now.version ||
    (before.disabled === now.disabled &&
      before.expiresAt === now.expiresAt &&
      hasSameGrants(before, now) &&
      isDeepStrictEqual(before.allowedOrigins, now.allowedOrigins) &&
      isDeepStrictEqual(before.allowedCidrs, now.allowedCidrs))
  );
}

function hasSameGrants(before: Grants, now: Grants | undefined): boolean {
  return (
    now !== undefined &&
    isDeepStrictEqual(before.permissions, now.permissions) &&
    isDeepStrictEqual(before.rules, now.rules)
  );
}

function isStillKey({ id }: KeyRecord, { keys }: ApplicationRecord, now: number): boolean {
  const key = keys.find((key) => key.id === id);
  return key !== undefined && (key.expiresAt === undefined || now < key.expiresAt);
}
