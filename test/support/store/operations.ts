import { timingSafeEqual } from "node:crypto";
import type { ApplicationStore } from "../../../src/store/port/applications.js";
import type {
  Decision,
  NewResponse,
  RecordKind,
  RecordRef,
} from "../../../src/store/port/change.js";
import { CallerChanged } from "../../../src/store/port/errors.js";
import type { NewEvent } from "../../../src/store/port/events.js";
import {
  type ApplicationChange,
  type ApplicationRecord,
  authorizedSession,
  changedApplication,
  type NewApplication,
  type NewSession,
  newApplication,
  newSession,
  type SessionGrant,
  type SessionRecord,
  type SessionWithApplication,
} from "../../../src/store/port/records.js";
import type { SessionStore } from "../../../src/store/port/sessions.js";
import type { Store } from "../../../src/store/port/store.js";

/** The preconditions of a change in a test, and what is written with it. */
export interface WriteContext<R> {
  readonly caller?: TestCaller | undefined;
  readonly idempotencyId?: string | undefined;
  readonly revokes?: boolean | undefined;
  isCanceled?(): boolean;
  responseFor?(outcome: R): NewResponse | undefined;
}

export interface ChangeContext<R> extends WriteContext<R> {
  eventFor(outcome: R): NewEvent | undefined;
}

/** A caller, whose current records the decision checks. */
export interface TestCaller {
  readonly applicationId: string;
  readonly sessionId?: string | undefined;
  readonly authorizerId?: string | undefined;
  /** Throws {@link CallerChanged}. */
  assertAuthority(found: CallerRecords | undefined, now: number): void;
}

/** The application of a caller, or a session with its applications. */
type CallerRecords = Pick<SessionWithApplication, "application"> & Partial<SessionWithApplication>;

/** A session to open, and the limits of unauthorized ones. */
export interface SessionToOpen extends NewSession {
  readonly quota?: { readonly total: number; readonly perNetwork?: number | undefined } | undefined;
}

/** The authorization of a session with one of these nonces. */
export interface SessionToAuthorize extends Omit<SessionGrant, "authorizer"> {
  readonly sessionId: string;
  readonly tenantId: string;
  readonly nonceHashes: readonly Uint8Array[];
  readonly authorizedBy: string;
  readonly quota?: number | undefined;
}

/** A store with operations for tests. Each is one change. */
export interface OperableStore extends Store {
  readonly applications: ApplicationStore & ApplicationOperations;
  readonly sessions: SessionStore & SessionOperations;
}

interface ApplicationOperations {
  create(
    application: NewApplication,
    context: ChangeContext<ApplicationRecord>,
  ): Promise<ApplicationRecord>;
  /** Changes nothing if `change` returns `undefined`. Returns `undefined` if there is no such application. */
  update(
    tenantId: string,
    id: string,
    change: (current: ApplicationRecord, now: number) => ApplicationChange | undefined,
    context: ChangeContext<ApplicationRecord>,
  ): Promise<ApplicationRecord | undefined>;
  /** Returns whether there was such an application. */
  delete(
    tenantId: string,
    id: string,
    context: ChangeContext<ApplicationRecord>,
    check?: (current: ApplicationRecord) => void,
  ): Promise<boolean>;
}

interface SessionOperations {
  /** Returns `undefined` if there is no such application. */
  create(
    session: SessionToOpen,
    context?: WriteContext<SessionRecord>,
  ): Promise<SessionRecord | undefined>;
  authorize(
    grant: SessionToAuthorize,
    context: ChangeContext<SessionRecord>,
  ): Promise<"authorized" | "used" | "unknown">;
  /** Returns whether there was such a session. */
  delete(
    tenantId: string,
    id: string,
    context: ChangeContext<SessionRecord>,
    check?: (current: SessionWithApplication) => void,
  ): Promise<boolean>;
}

/**
 * Adds operations to a store. They return records as the store reads them, for stores
 * whose records are not plain objects, unless `readsBack` is false.
 */
export function withOperations(store: Store, readsBack = true): OperableStore {
  const operations = createOperations(store, readsBack);
  return {
    ...store,
    applications: { ...store.applications, ...operations.applications },
    sessions: { ...store.sessions, ...operations.sessions },
  };
}

function createOperations(
  store: Store,
  readsBack: boolean,
): {
  readonly applications: ApplicationOperations;
  readonly sessions: SessionOperations;
} {
  /** The record as the store returns it, unless it has changed again. */
  async function asStored(record: ApplicationRecord): Promise<ApplicationRecord> {
    if (!readsBack) {
      return record;
    }
    const { find, findExpired } = store.applications;
    const found = (await find(record.id)) ?? (await findExpired(record.id));
    return found?.version === record.version ? found : record;
  }

  return {
    applications: {
      create: async (application, context) => {
        const created = await store.change({
          ...optionsOf(context),
          target: { kind: "application", id: application.id },
          creates: true,
          decide({ id, caller }, now) {
            checkCaller(context, caller, now);
            const created = newApplication({ ...application, id }, now);
            return writing(created, created, created, context);
          },
        });
        return asStored(created);
      },

      update: async (tenantId, id, change, context) => {
        const updated = await store.change({
          ...optionsOf(context),
          target: { kind: "application", id },
          decide({ target, caller }, now): Decision<"application", ApplicationRecord | undefined> {
            checkCaller(context, caller, now);
            if (target?.tenantId !== tenantId) {
              return { result: undefined };
            }
            const changes = change(target, now);
            if (!changes) {
              return { response: context.responseFor?.(target), result: target };
            }
            const changed = changedApplication(target, changes, now);
            return writing(changed, changed, changed, context);
          },
        });
        return updated && asStored(updated);
      },

      delete: (tenantId, id, context, check) =>
        store.change({
          ...optionsOf(context),
          revokes: true,
          target: { kind: "application", id },
          decide({ target, caller }, now): Decision<"application", boolean> {
            checkCaller(context, caller, now);
            if (target?.tenantId !== tenantId) {
              return { result: false };
            }
            check?.(target);
            return writing(null, target, true, context);
          },
        }),
    },

    sessions: {
      create: async ({ quota, ...session }, context = {}) => {
        const { applicationId, networkHash } = session;
        const options = optionsOf(context);
        const application: RecordRef<"application"> = { kind: "application", id: applicationId };
        const opened = await store.change({
          ...options,
          reads: { ...options.reads, application },
          target: { kind: "session", id: session.id },
          creates: true,
          decide({ id, caller, application }, now): Decision<"session", SessionRecord | undefined> {
            checkCaller(context, caller, now);
            if (application?.tenantId !== session.tenantId) {
              return { result: undefined };
            }
            const epoch = application.sessionEpoch;
            const opened = newSession({ ...session, id }, epoch, now);
            const limit = { applicationId, epoch };
            const provided = quota && [
              ...(quota.perNetwork === undefined
                ? []
                : [
                    {
                      ...limit,
                      quota: "network" as const,
                      networkHash,
                      limit: quota.perNetwork,
                    },
                  ]),
              { ...limit, quota: "unauthorized" as const, limit: quota.total },
            ];
            const response = context.responseFor?.(opened);
            return { put: opened, provided, response, result: opened };
          },
        });
        const found = opened && readsBack && (await store.sessions.find(opened.id));
        return found && found.session.version === opened?.version ? found.session : opened;
      },

      authorize: ({ sessionId, tenantId, nonceHashes, authorizedBy, quota, ...grant }, context) => {
        const options = optionsOf(context);
        const authorizer: RecordRef<"application"> = { kind: "application", id: authorizedBy };
        return store.change({
          ...options,
          reads: { ...options.reads, authorizer },
          target: { kind: "session", id: sessionId },
          decide(
            { target, caller, authorizer },
            now,
          ): Decision<"session", "authorized" | "used" | "unknown"> {
            checkCaller(context, caller, now);
            const session = target?.session.tenantId === tenantId ? target.session : undefined;
            const isNonce = (hash: Uint8Array) =>
              session !== undefined &&
              hash.length === session.nonceHash.length &&
              timingSafeEqual(hash, session.nonceHash);
            if (!target || !session || !nonceHashes.some(isNonce)) {
              return { result: "unknown" };
            }
            if (session.authorizedAt !== undefined) {
              return { result: "used" };
            }
            const { id: applicationId, sessionEpoch: epoch } = target.application;
            const given = authorizer ?? { id: authorizedBy, authorizationEpoch: 0 };
            const authorized = authorizedSession(session, { ...grant, authorizer: given }, now);
            return {
              ...writing(authorized, authorized, "authorized", context),
              provided:
                quota === undefined
                  ? []
                  : [{ quota: "authorized", applicationId, epoch, limit: quota }],
            };
          },
        });
      },

      delete: (tenantId, id, context, check) =>
        store.change({
          ...optionsOf(context),
          revokes: true,
          target: { kind: "session", id },
          decide({ target, caller }, now): Decision<"session", boolean> {
            checkCaller(context, caller, now);
            if (target?.session.tenantId !== tenantId) {
              return { result: false };
            }
            check?.(target);
            return writing(null, target.session, true, context);
          },
        }),
    },
  };
}

function optionsOf({ caller, idempotencyId, revokes, isCanceled }: WriteContext<never>) {
  return {
    idempotencyId,
    revokes,
    cancellation: {
      get reason() {
        return isCanceled?.() ? new Error("canceled") : undefined;
      },
    },
    reads: { caller: caller && refOf(caller) },
  };
}

function refOf({ applicationId, sessionId }: TestCaller): RecordRef {
  return sessionId === undefined
    ? { kind: "application", id: applicationId }
    : { kind: "session", id: sessionId };
}

function checkCaller(
  { caller }: WriteContext<never>,
  found: ApplicationRecord | SessionWithApplication | undefined,
  now: number,
): void {
  caller?.assertAuthority(found && ("session" in found ? found : { application: found }), now);
}

function writing<K extends RecordKind, O extends ApplicationRecord | SessionRecord, R>(
  put: Decision<K, R>["put"],
  outcome: O,
  result: R,
  context: ChangeContext<O>,
): Decision<K, R> {
  return {
    put,
    event: context.eventFor(outcome),
    response: context.responseFor?.(outcome),
    result,
  };
}
