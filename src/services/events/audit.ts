import type { HandlerContext } from "@connectrpc/connect";
import { CredentialStateRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import type { Caller } from "../../auth/caller.js";
import type { AddressOf } from "../../auth/caller-address.js";
import { callOf } from "../../call.js";
import { createConverter } from "../../contract/message-converter.js";
import { methodName } from "../../contract/methods.js";
import { Problem } from "../../errors.js";
import type { ChangeContext } from "../../store/port/change-context.js";
import type { CredentialState, Principal } from "../../store/port/events.js";
import type { ApplicationRecord, SessionRecord } from "../../store/port/records.js";
import { type Write, writeContextOf } from "../change-context.js";

/** A change as the audit log describes it. */
export interface AuditedChange<R> extends Write<R> {
  /** For example `application.updated`. */
  readonly kind: string;
  /** Whether the change has an event. All have one by default. */
  isRecorded?(outcome: R): boolean;
  target(outcome: R): Principal;
  /** The state before the change; read after the change has run. */
  before?(outcome: R): CredentialState | undefined;
  /** The state after the change. */
  after?(outcome: R): CredentialState;
  /** The expiry that the change sets. */
  endsAt?(outcome: R): number | undefined;
  /** Whether a revocation spares the sessions that the target authorized. */
  readonly openedOnly?: boolean;
}

/** Creates the context of a change: its preconditions, its event, and its response if that is stored. */
export type Audit = <R>(
  context: Pick<HandlerContext, "values" | "method">,
  change: AuditedChange<R>,
) => ChangeContext<R>;

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
      method: methodName(method),
      requestId,
      address: addressOf(peer),
    } as const;

    return {
      ...writeContextOf(context, change),
      eventFor: (outcome) =>
        change.isRecorded?.(outcome) === false
          ? undefined
          : {
              ...callFields,
              target: change.target(outcome),
              before: change.before?.(outcome),
              after: change.after?.(outcome),
              endsAt: change.endsAt?.(outcome),
              openedOnly: change.openedOnly,
            },
    };
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
