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
export interface Principal {
  /** Absent if there is none in the caller's tenant, or the caller may not see it. */
  readonly owner?: Caller | undefined;
  /** Why the principal has no access; absent if it is active. */
  readonly inactiveReason?: InactiveKey["reason"] | undefined;
}

/** Finds the principals of checks, by key or id, in the caller's tenant. Use of a key is recorded. */
export interface Principals {
  find(caller: Caller, request: CheckAccessRequest): MaybePromise<Principal>;

  /** Finds the principals of many checks, each once, by {@link principalIdOf}. Those in `known` are not read again. */
  findMany(
    caller: Caller,
    requests: readonly CheckAccessRequest[],
    options: FindManyOptions,
  ): Promise<PrincipalsById>;
}

type PrincipalReference = CheckAccessRequest["principal"];

export type PrincipalsById = ReadonlyMap<string, Principal>;

interface FindManyOptions {
  readonly known: PrincipalsById;
  readonly pace: Pace;
}

/** Identifies the principal of a check within a batch. */
export function principalIdOf(request: CheckAccessRequest): string {
  const { case: by, value = "" } = request.principal;
  return `${by} ${isUuid(by) ? value.toLowerCase() : value}`;
}

function isUuid(by: PrincipalReference["case"]): boolean {
  return by === "applicationId" || by === "sessionId";
}

interface PrincipalOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly lastUsed: Pick<LastUsedTracker, "record">;
  readonly grantPolicy: GrantPolicy;
}

const unknown: Principal = {};

export function createPrincipals({
  store,
  keyring,
  lastUsed,
  grantPolicy,
}: PrincipalOptions): Principals {
  const identify = createAuthenticate(store, keyring, grantPolicy);
  const identifyMany = createAuthenticateMany(store, keyring, grantPolicy);
  const identifyInactive = createIdentifyInactive(store, keyring);
  const findById = createFindById(store, grantPolicy);

  /** The principal with a key, whose valid owner was looked up. If there is none, looks up whom it belonged to. */
  function principalByKey(
    caller: Caller,
    key: string,
    owner: Caller | undefined,
  ): MaybePromise<Principal> {
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

  function principalById(caller: Caller, reference: PrincipalReference): MaybePromise<Principal> {
    return mapMaybePromise(findById(caller.application.tenantId, reference), (principal) =>
      ifVisible(caller, principal),
    );
  }

  return {
    find(caller, { principal: reference }) {
      const { case: by, value } = reference;
      return by === "key"
        ? mapMaybePromise(identify(value), (owner) => principalByKey(caller, value, owner))
        : principalById(caller, reference);
    },

    async findMany(caller, requests, { known, pace }) {
      const found = new Map<string, MaybePromise<Principal>>();
      const wanted = new Map<string, PrincipalReference>();
      for (const request of requests) {
        const id = principalIdOf(request);
        const principal = known.get(id);
        if (principal) {
          found.set(id, principal);
        } else {
          wanted.set(id, request.principal);
        }
      }
      const owners = await identifyMany([...wanted.values()].map(keyOf));
      let index = 0;
      for (const [id, reference] of wanted) {
        await pace();
        const owner = owners[index++];
        const principal =
          reference.case === "key"
            ? principalByKey(caller, reference.value, owner)
            : principalById(caller, reference);
        if (principal instanceof Promise) {
          // Awaited below. An unhandled rejection before that would end the process.
          principal.catch(() => {});
        }
        found.set(id, principal);
      }
      for (const [id, principal] of found) {
        if (principal instanceof Promise) {
          found.set(id, await principal);
        }
      }
      return found as PrincipalsById;
    },
  };
}

/** The key of a principal, or a text that is none. */
function keyOf(reference: PrincipalReference): string {
  return reference.case === "key" ? reference.value : "";
}

/** Other tenants are invisible. Only callers that can read applications may see that one is disabled. */
function ifVisible(caller: Caller, principal: Principal): Principal {
  const { owner, inactiveReason } = principal;
  const isVisible =
    owner?.application.tenantId === caller.application.tenantId &&
    (inactiveReason !== "disabled" || callerHolds(caller, "application:read"));
  return isVisible ? principal : unknown;
}

/** Finds principals by id or external id, active or not. */
function createFindById(
  { applications, sessions }: Store,
  grantPolicy: GrantPolicy,
): (tenantId: string, reference: PrincipalReference) => MaybePromise<Principal> {
  const addBoundary = createAddBoundary(grantPolicy);

  function toPrincipal(owner: Caller | undefined, isExpired: boolean): Principal {
    if (!owner) {
      return unknown;
    }
    const inactiveReason = isExpired ? "expired" : isDisabled(owner) ? "disabled" : undefined;
    return { owner, inactiveReason };
  }

  function findSession(id: string): MaybePromise<Principal> {
    return mapMaybePromise(sessions.find(id), (active) =>
      active
        ? toPrincipal(addBoundary(active), false)
        : mapMaybePromise(sessions.findExpired(id), (expired) => toPrincipal(expired, true)),
    );
  }

  function findApplication(id: string): MaybePromise<Principal> {
    return mapMaybePromise(applications.find(id), (active) =>
      active
        ? toPrincipal({ application: active }, false)
        : mapMaybePromise(applications.findExpired(id), (expired) =>
            toPrincipal(expired && { application: expired }, true),
          ),
    );
  }

  async function findByExternalId(tenantId: string, externalId: string): Promise<Principal> {
    const query = { tenantId, filter: { externalId }, size: 1, from: { page: 1 } };
    const [application] = (await applications.list(query)).items;
    return toPrincipal(application && { application }, false);
  }

  return (tenantId, reference) => {
    switch (reference.case) {
      case "applicationId":
        return findApplication(reference.value.toLowerCase());
      case "sessionId":
        return findSession(reference.value.toLowerCase());
      case "externalId":
        return findByExternalId(tenantId, reference.value);
      default:
        return unknown;
    }
  };
}
