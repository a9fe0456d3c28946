/**
 * The one way for handlers to change a record. It asserts the authority of the
 * caller again with the records that the change reads, completes the event, and
 * seals the response for replays.
 */
import { isDeepStrictEqual } from "node:util";
import type { HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.js";
import type { AddressOf } from "../auth/caller-address.js";
import { callOf } from "../call.js";
import type { Grants } from "../contract/grants.js";
import { methodName } from "../contract/methods.js";
import { Problem } from "../errors.js";
import { replayOptionsKey } from "../idempotency/idempotency.js";
import type {
  Decision,
  LiveRecords,
  Reads,
  RecordKind,
  RecordRef,
  Snapshot,
} from "../store/port/change.js";
import { CallerChanged } from "../store/port/errors.js";
import type { NewEvent, Principal } from "../store/port/events.js";
import { type ApplicationRecord, isUnexpired, type KeyRecord } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import { actorOf } from "./events/audit.js";

/** What a handler declares and decides. */
export interface HandlerChange<K extends RecordKind, N extends Reads, R extends object> {
  readonly target: RecordRef<K>;
  /** Whether the target is new. */
  readonly creates?: boolean | undefined;
  /** The records that the decision needs besides its target and its caller. */
  readonly reads?: N | undefined;
  /** Whether it removes access. */
  readonly revokes?: boolean | undefined;
  /** Whether the decision may take long. */
  readonly isCostly?: boolean | undefined;

  /**
   * Decides without side effects: it may run more than once. Throws a problem to
   * refuse. Gets the target only if it belongs to the tenant of the caller, and
   * the caller with its current records.
   */
  decide(snapshot: Snapshot<K, N>, now: number, caller: Caller): HandlerDecision<K, R>;
}

export interface HandlerDecision<K extends RecordKind, R extends object>
  extends Pick<Decision<K, R>, "put" | "provided"> {
  /** Absent if the audit log does not record the change. */
  readonly event?: ChangeEvent | undefined;
  readonly reply: R;
}

/** An event without what all events of a call have in common. */
export type ChangeEvent = Pick<
  NewEvent,
  "kind" | "target" | "before" | "after" | "endsAt" | "openedOnly"
>;

/** Makes a change for a call, and returns its reply. */
export type Commit = <K extends RecordKind, N extends Reads, R extends object>(
  context: Pick<HandlerContext, "values" | "method">,
  change: HandlerChange<K, N, R>,
) => Promise<R>;

export function createCommit({
  store,
  addressOf,
}: {
  readonly store: Pick<Store, "change">;
  readonly addressOf: AddressOf;
}): Commit {
  return <K extends RecordKind, N extends Reads, R extends object>(
    context: Pick<HandlerContext, "values" | "method">,
    { decide, reads, ...change }: HandlerChange<K, N, R>,
  ) => {
    const { call, caller } = callOf(context);
    const { tenantId } = caller.application;
    const replay = context.values.get(replayOptionsKey);

    return store.change<K, N & CallerReads, R>({
      ...change,
      reads: { ...(reads as N), caller: refOf(caller) },
      idempotencyId: replay?.id,
      cancellation: call.cancellation,
      decide(snapshot, now) {
        const current = assertSameAuthority(caller, snapshot.caller, now);
        const found = snapshot.target;
        const target = found && tenantOf(found) === tenantId ? found : undefined;
        const { event, reply, ...decision } = namingTarget(target, () =>
          decide({ ...snapshot, target }, now, current),
        );
        return {
          ...decision,
          event: event && {
            tenantId,
            outcome: "success",
            actor: actorOf(caller),
            method: methodName(context.method),
            requestId: call.requestId,
            address: addressOf(call.peer),
            ...event,
          },
          response: replay?.seal(reply),
          result: reply,
        };
      },
    });
  };
}

type LiveRecord = LiveRecords[RecordKind];
interface CallerReads extends Reads {
  readonly caller: RecordRef;
}

function refOf({ application, session }: Caller): RecordRef {
  return session
    ? { kind: "session", id: session.id }
    : { kind: "application", id: application.id };
}

function tenantOf(live: LiveRecord): string {
  return ("session" in live ? live.session : live).tenantId;
}

/** A record as an event or a denied call names it. */
export function principalOf(live: LiveRecord): Principal {
  const { session, application } =
    "session" in live ? live : { session: undefined, application: live };
  return { applicationId: application.id, sessionId: session?.id, name: application.name };
}

/** Runs a decision. If it denies access, the audit log names the target. */
function namingTarget<T>(target: LiveRecord | undefined, decide: () => T): T {
  try {
    return decide();
  } catch (reason) {
    if (target && reason instanceof Problem) {
      reason.target = principalOf(target);
    }
    throw reason;
  }
}

/** The caller with its current records. Throws if they do not give it the rights that it was authorized with. */
function assertSameAuthority(before: Caller, live: LiveRecord | undefined, now: number): Caller {
  const current = live && ("session" in live ? live : { application: live });
  if (!current || !hasSameAuthority(before, current, now)) {
    throw new CallerChanged("The rights of the caller have changed.");
  }
  return { ...before, ...current };
}

type CallerRecords = Pick<Caller, "application" | "session" | "authorizer">;

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
