import { isDeepStrictEqual } from "node:util";
import type { HandlerContext } from "@connectrpc/connect";
import { type Caller, callerOf, callKey } from "../../auth/caller.js";
import type { AddressOf } from "../../auth/caller-address.js";
import type { Grants } from "../../contract/grants.js";
import type { CallerRecords, ChangeCaller, Trail } from "../../store/port/audit.js";
import { CallerChanged } from "../../store/port/errors.js";
import type { CredentialState, NewEvent, Party } from "../../store/port/events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../../store/port/records.js";

/** What a call does to a record, as the trail will tell it. */
export interface AuditedChange<R> {
  /** For example `application.updated`. */
  readonly kind: string;
  /** Whether it takes access away. */
  readonly revokes?: boolean;
  target(outcome: R): Party;
  /** What the record was; asked once the change has seen it. */
  before?(outcome: R): CredentialState | undefined;
  /** What the record became. */
  after?(outcome: R): CredentialState;
  /** When something ends by it. */
  endsAt?(outcome: R): number | undefined;
  /** What the caller is answered, which may be kept to be given again. */
  response(outcome: R): object;
}

/** What is written with a change that a call makes: the event of it, and its answer where that is to be kept. */
export type Audit = <R>(context: CallContext, deed: AuditedChange<R>) => Trail<R>;

type CallContext = Pick<HandlerContext, "values" | "method">;

export function createAudit(addressOf: AddressOf): Audit {
  return (context, deed) => {
    const caller = callerOf(context);
    const { requestId, keepAnswer, cancellation } = context.values.get(callKey);
    const { method } = context;
    const facts = {
      tenantId: caller.application.tenantId,
      kind: deed.kind,
      outcome: "success",
      actor: actorOf(caller),
      method: `${method.parent.typeName}/${method.name}`,
      requestId,
      address: addressOf(context),
    } as const;

    return {
      caller: changeCallerOf(caller),
      answerId: keepAnswer?.id,
      revokes: deed.revokes,
      isGivenUp: () => cancellation.reason !== undefined,
      entriesFor(outcome) {
        const event: NewEvent = {
          ...facts,
          target: deed.target(outcome),
          before: deed.before?.(outcome),
          after: deed.after?.(outcome),
          endsAt: deed.endsAt?.(outcome),
        };
        return { events: [event], answer: keepAnswer?.seal(deed.response(outcome)) };
      },
    };
  };
}

/** Who makes a call. */
export function actorOf({ application, session, key }: Caller): Party {
  return { applicationId: application.id, sessionId: session?.id, keyId: key?.id };
}

/** What an event shows of an application. */
export function stateOfApplication(record: ApplicationRecord): CredentialState {
  const { name, permissions, rules, disabled, expiresAt } = record;
  const { allowedOrigins, allowedCidrs, sessionQuota } = record;
  const limits = { allowedOrigins, allowedCidrs, sessionQuota };
  return { name, permissions, rules, disabled, ...limits, expiresAt };
}

/** What an event shows of a session. */
export function stateOfSession({ permissions, rules, expiresAt }: SessionRecord): CredentialState {
  return { permissions, rules, expiresAt };
}

/** The caller of a change as it was decided on, for the store to compare with when it writes the change. */
function changeCallerOf(caller: Caller): ChangeCaller {
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
