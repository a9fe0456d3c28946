import { isDeepStrictEqual } from "node:util";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { CredentialStateRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import { type Caller, callOf } from "../../auth/caller.js";
import type { AddressOf } from "../../auth/caller-address.js";
import type { Grants } from "../../contract/grants.js";
import { createConverter } from "../../contract/plain.js";
import { Problem } from "../../errors.js";
import type {
  CallerRecords,
  ChangeCaller,
  ChangeContext,
  NewResponse,
  WriteContext,
} from "../../store/port/change-context.js";
import { CallerChanged } from "../../store/port/errors.js";
import type { CredentialState, Principal } from "../../store/port/events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../../store/port/records.js";

/** A change as the audit log describes it. */
export interface AuditedChange<R> extends Write<R> {
  /** For example `application.updated`. */
  readonly kind: string;
  target(outcome: R): Principal;
  /** The state before the change; read after the change has run. */
  before?(outcome: R): CredentialState | undefined;
  /** The state after the change. */
  after?(outcome: R): CredentialState;
  /** The expiry that the change sets. */
  endsAt?(outcome: R): number | undefined;
}

/** A write that the audit log does not describe. */
interface Write<R> {
  /** Whether it revokes access. */
  readonly revokes?: boolean;
  /** The response to the caller, which may be stored for idempotent retries. */
  response(outcome: R): object;
}

/** Creates the context of a change: its preconditions, its event, and its response if that is stored. */
export type Audit = <R>(
  context: Pick<HandlerContext, "values" | "method">,
  change: AuditedChange<R>,
) => ChangeContext<R>;

/** How to store a response for replay. */
interface StoredResponse {
  readonly id: string;
  seal(response: object): NewResponse;
}

/** Given to a handler whose response must be stored together with its change, so that it can be replayed. */
export const storedResponseKey = createContextKey<StoredResponse | undefined>(undefined, {
  description: "how to store the response",
});

export function createAudit(addressOf: AddressOf): Audit {
  return (context, change) => {
    const { call, caller } = callOf(context);
    const { requestId, peer } = call;
    const { method } = context;
    const callFields = {
      tenantId: caller.application.tenantId,
      kind: change.kind,
      outcome: "success",
      actor: actorOf(caller),
      method: `${method.parent.typeName}/${method.name}`,
      requestId,
      address: addressOf(peer),
    } as const;

    return {
      ...writeContextOf(context, change),
      eventFor: (outcome) => ({
        ...callFields,
        target: change.target(outcome),
        before: change.before?.(outcome),
        after: change.after?.(outcome),
        endsAt: change.endsAt?.(outcome),
      }),
    };
  };
}

/** The context of a write without an event. */
export function writeContextOf<R>(
  context: Pick<HandlerContext, "values">,
  { revokes, response }: Write<R>,
): WriteContext<R> {
  const { call, caller } = callOf(context);
  const storedResponse = context.values.get(storedResponseKey);
  return {
    caller: changeCallerOf(caller),
    idempotencyId: storedResponse?.id,
    revokes,
    isCanceled: () => call.cancellation.reason !== undefined,
    responseFor: (outcome) => storedResponse?.seal(response(outcome)),
  };
}

/** A caller as an event describes it. */
export function actorOf({ application, session, key }: Caller): Principal {
  const { id: applicationId, name } = application;
  return { applicationId, sessionId: session?.id, keyId: key?.id, name };
}

/** Runs checks on the target of a call. If they deny access, the audit log names the target. */
export function withDenialTarget<T>(target: Principal, check: () => T): T {
  try {
    return check();
  } catch (reason) {
    if (reason instanceof Problem) {
      reason.target = target;
    }
    throw reason;
  }
}

const pickState = createConverter(CredentialStateRecordSchema, {
  withDefaults: true,
  shareNested: true,
});

/** The state of an application or a session for an event. */
export function stateOf(record: ApplicationRecord | SessionRecord): CredentialState {
  return pickState(record) as CredentialState;
}

/** The caller as it was authorized. The store compares it with the current records when it writes the change. */
function changeCallerOf(caller: Caller): ChangeCaller {
  const { application, session } = caller;
  return {
    applicationId: application.id,
    sessionId: session?.id,
    authorizerId: session?.authorizedBy,
    check(found, now) {
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
  const key = keys.find((key) => key.id === id);
  return key !== undefined && (key.expiresAt === undefined || now < key.expiresAt);
}
