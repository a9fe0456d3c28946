import type { HandlerContext } from "@connectrpc/connect";
import { type Caller, callerOf, callKey } from "../caller.js";
import type { AddressOf } from "../caller-address.js";
import { changeCallerOf } from "../change-caller.js";
import type { CredentialState, NewEvent, Party } from "../store/events.js";
import type { ApplicationRecord, SessionRecord } from "../store/store.js";
import type { Trail } from "../store/trail.js";

/** What a call does to a record, as the trail will tell it. */
export interface Deed<R> {
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
  answer(outcome: R): object;
}

/** What is written with a change that a call makes: the event of it, and its answer where that is to be kept. */
export type TrailOf = <R>(context: CallContext, deed: Deed<R>) => Trail<R>;

type CallContext = Pick<HandlerContext, "values" | "method">;

export function createTrailOf(addressOf: AddressOf): TrailOf {
  return (context, deed) => {
    const caller = callerOf(context);
    const { requestId, keepAnswer, ending } = context.values.get(callKey);
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
      isGivenUp: () => ending.reason !== undefined,
      entriesFor(outcome) {
        const event: NewEvent = {
          ...facts,
          target: deed.target(outcome),
          before: deed.before?.(outcome),
          after: deed.after?.(outcome),
          endsAt: deed.endsAt?.(outcome),
        };
        return { events: [event], answer: keepAnswer?.seal(deed.answer(outcome)) };
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
