import { isDeepStrictEqual } from "node:util";
import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.js";
import { callOf } from "../call.js";
import type { Grants } from "../contract/grants.js";
import { replayOptionsKey } from "../idempotency/idempotency.js";
import type { CallerRecords, ChangeCaller, WriteContext } from "../store/port/change-context.js";
import { CallerChanged } from "../store/port/errors.js";
import { type ApplicationRecord, isUnexpired, type KeyRecord } from "../store/port/records.js";

/** A write, with or without an audit event. */
export interface Write<R> {
  /** Whether it revokes access. */
  readonly revokes?: boolean;
  /** The response to the caller, which may be stored for idempotent retries. */
  response(outcome: R): object;
}

/** The context of a write without an event. */
export function writeContextOf<R>(
  context: Pick<HandlerContext, "values">,
  { revokes, response }: Write<R>,
): WriteContext<R> {
  const { call, caller } = callOf(context);
  const replay = context.values.get(replayOptionsKey);
  return {
    caller: changeCallerOf(caller),
    idempotencyId: replay?.id,
    revokes,
    isCanceled: () => call.cancellation.reason !== undefined,
    responseFor: (outcome) => replay?.seal(response(outcome)),
  };
}

/** The caller as it was authorized. The store compares it with the current records when it writes the change. */
function changeCallerOf(caller: Caller): ChangeCaller {
  const { application, session } = caller;
  return {
    applicationId: application.id,
    sessionId: session?.id,
    authorizerId: session?.authorizedBy,
    assertAuthority(found, now) {
      if (!found || !hasSameAuthority(caller, found, now)) {
        throw new CallerChanged("The rights of the caller have changed.");
      }
    },
  };
}

/** Whether the current records still give the caller the rights it was authorized with. */
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
  return isUnexpired(
    keys.find((key) => key.id === id),
    now,
  );
}
