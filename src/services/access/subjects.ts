import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  createAddBoundary,
  createAuthenticate,
  createAuthenticateMany,
  createIdentifyInactive,
  type InactiveKey,
  isDisabled,
} from "../../auth/authenticate.js";
import { type Caller, callerHolds } from "../../auth/caller.js";
import type { Keyring } from "../../auth/keys.js";
import type { LastUsedTracker } from "../../auth/last-used.js";
import type { GrantPolicy } from "../../config/settings.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import type { Pace } from "../../lib/event-loop.js";
import type { Store } from "../../store/port/store.js";

/** The application or session that a check is about. */
export interface Subject {
  /** Absent if there is none in the caller's tenant, or the caller may not see it. */
  readonly owner?: Caller | undefined;
  /** Why the subject has no access; absent if it is active. */
  readonly inactiveReason?: InactiveKey["reason"] | undefined;
}

/** Finds the subjects of checks, by key or id, in the caller's tenant. Use of a key is recorded. */
export interface Subjects {
  find(caller: Caller, request: CheckAccessRequest): MaybePromise<Subject>;

  /** Finds the subjects of many checks, each once, by {@link subjectIdOf}. Those in `known` are not read again. */
  findMany(
    caller: Caller,
    requests: readonly CheckAccessRequest[],
    options: FindManyOptions,
  ): Promise<SubjectsById>;
}

type Principal = CheckAccessRequest["principal"];

export type SubjectsById = ReadonlyMap<string, Subject>;

interface FindManyOptions {
  readonly known: SubjectsById;
  readonly pace: Pace;
}

/** Identifies the subject of a check within a batch. */
export function subjectIdOf(request: CheckAccessRequest): string {
  const { case: kind, value = "" } = request.principal;
  return `${kind} ${isUuid(kind) ? value.toLowerCase() : value}`;
}

function isUuid(kind: Principal["case"]): boolean {
  return kind === "applicationId" || kind === "sessionId";
}

interface SubjectOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly lastUsed: Pick<LastUsedTracker, "record">;
  readonly grantPolicy: GrantPolicy;
}

const unknown: Subject = {};

export function createSubjects({
  store,
  keyring,
  lastUsed,
  grantPolicy,
}: SubjectOptions): Subjects {
  const identify = createAuthenticate(store, keyring, grantPolicy);
  const identifyMany = createAuthenticateMany(store, keyring, grantPolicy);
  const identifyInactive = createIdentifyInactive(store, keyring);
  const findById = createFindById(store, grantPolicy);

  /** The subject with a key, whose valid owner was looked up. If there is none, looks up whom it belonged to. */
  function subjectByKey(
    caller: Caller,
    key: string,
    owner: Caller | undefined,
  ): MaybePromise<Subject> {
    if (owner?.application.tenantId === caller.application.tenantId) {
      lastUsed.record(owner);
      return { owner };
    }
    return mapMaybePromise(identifyInactive(key), (inactive) =>
      inactive
        ? ifVisible(caller, { owner: inactive.owner, inactiveReason: inactive.reason })
        : unknown,
    );
  }

  function subjectById(caller: Caller, principal: Principal): MaybePromise<Subject> {
    return mapMaybePromise(findById(caller.application.tenantId, principal), (subject) =>
      ifVisible(caller, subject),
    );
  }

  return {
    find(caller, { principal }) {
      const { case: kind, value } = principal;
      return kind === "key"
        ? mapMaybePromise(identify(value), (owner) => subjectByKey(caller, value, owner))
        : subjectById(caller, principal);
    },

    async findMany(caller, requests, { known, pace }) {
      const found = new Map<string, MaybePromise<Subject>>();
      const wanted = new Map<string, Principal>();
      for (const request of requests) {
        const id = subjectIdOf(request);
        const subject = known.get(id);
        if (subject) {
          found.set(id, subject);
        } else {
          wanted.set(id, request.principal);
        }
      }
      const owners = await identifyMany([...wanted.values()].map(keyOf));
      let index = 0;
      for (const [id, principal] of wanted) {
        await pace();
        const owner = owners[index++];
        const subject =
          principal.case === "key"
            ? subjectByKey(caller, principal.value, owner)
            : subjectById(caller, principal);
        if (subject instanceof Promise) {
          // Awaited below. An unhandled rejection before that would end the process.
          subject.catch(() => {});
        }
        found.set(id, subject);
      }
      for (const [id, subject] of found) {
        if (subject instanceof Promise) {
          found.set(id, await subject);
        }
      }
      return found as SubjectsById;
    },
  };
}

/** The key of a subject, or a text that is none. */
function keyOf(principal: Principal): string {
  return principal.case === "key" ? principal.value : "";
}

/** Other tenants are invisible. Only callers that can read applications may see that one is disabled. */
function ifVisible(caller: Caller, subject: Subject): Subject {
  const { owner, inactiveReason } = subject;
  const isVisible =
    owner?.application.tenantId === caller.application.tenantId &&
    (inactiveReason !== "disabled" || callerHolds(caller, "application:read"));
  return isVisible ? subject : unknown;
}

/** Finds subjects by id or external id, active or not. */
function createFindById(
  { applications, sessions }: Store,
  grantPolicy: GrantPolicy,
): (tenantId: string, principal: Principal) => MaybePromise<Subject> {
  const addBoundary = createAddBoundary(grantPolicy);

  function toSubject(owner: Caller | undefined, isExpired: boolean): Subject {
    if (!owner) {
      return unknown;
    }
    const inactiveReason = isExpired ? "expired" : isDisabled(owner) ? "disabled" : undefined;
    return { owner, inactiveReason };
  }

  function findSession(id: string): MaybePromise<Subject> {
    return mapMaybePromise(sessions.find(id), (active) =>
      active
        ? toSubject(addBoundary(active), false)
        : mapMaybePromise(sessions.findExpired(id), (expired) => toSubject(expired, true)),
    );
  }

  function findApplication(id: string): MaybePromise<Subject> {
    return mapMaybePromise(applications.find(id), (active) =>
      active
        ? toSubject({ application: active }, false)
        : mapMaybePromise(applications.findExpired(id), (expired) =>
            toSubject(expired && { application: expired }, true),
          ),
    );
  }

  async function findByExternalId(tenantId: string, externalId: string): Promise<Subject> {
    const query = { tenantId, filter: { externalId }, size: 1, from: { page: 1 } };
    const [application] = (await applications.list(query)).items;
    return toSubject(application && { application }, false);
  }

  return (tenantId, principal) => {
    switch (principal.case) {
      case "applicationId":
        return findApplication(principal.value.toLowerCase());
      case "sessionId":
        return findSession(principal.value.toLowerCase());
      case "externalId":
        return findByExternalId(tenantId, principal.value);
      default:
        return unknown;
    }
  };
}
