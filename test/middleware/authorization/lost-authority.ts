import type { DescMethod } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { accessOf } from "../../../src/contract/methods.js";
import type { Store } from "../../../src/store/port/store.js";
import { admittedType, type MadeApplication, type MatrixTenant } from "./tenant.js";

/** Shorter than the lifetime of an unauthorized session. */
const minute = 60_000;

/** A caller that can lose its authority. */
interface DoomedCaller {
  readonly key: string;
  lose(): Promise<unknown>;
}

/** A way for a caller to lose its authority during a call. */
export interface Loss {
  /** The status of the refusal. */
  readonly refusal: 401 | 403;
  /** Whether this applies to callers of a method. */
  appliesTo(method: DescMethod): boolean;
  /** Whether the caller may still replay an earlier response. */
  readonly leavesAnswers?: boolean;
  make(tenant: MatrixTenant, method: DescMethod): Promise<DoomedCaller>;
}

/** How a manager revokes an application's authority. */
function ofApplication(
  lose: (tenant: MatrixTenant, caller: MadeApplication) => Promise<unknown>,
): Pick<Loss, "make"> {
  return {
    async make(tenant, method) {
      const caller = await tenant.application(admittedType(method), permissionsFor(method));
      return { key: caller.key, lose: () => lose(tenant, caller) };
    },
  };
}

/** How a session loses its authority. */
function ofSession(
  lose: (tenant: MatrixTenant, session: { readonly id: string }) => Promise<unknown>,
): Loss {
  return {
    refusal: 401,
    appliesTo: (method) => accessOf(method).permission === "session:delete",
    async make(tenant, method) {
      const expiresAt = timestampFromMs(tenant.now() + minute);
      const session = await tenant.session(permissionsFor(method), { expiresAt });
      return { key: session.sessionKey, lose: () => lose(tenant, session) };
    },
  };
}

/** How a session loses its authority through its authorizer. */
function ofAuthorizer(
  refusal: Loss["refusal"],
  lose: (tenant: MatrixTenant, authorizer: MadeApplication) => Promise<unknown>,
): Loss {
  return {
    ...ofSession(async () => {}),
    refusal,
    async make(tenant, method) {
      const { api, shop } = tenant;
      const permissions = permissionsFor(method);
      const authorizer = await tenant.application("private", permissions);
      const { sessionKey, nonce } = await api.createSession(shop.key);
      await api.authorizeSession(authorizer.key, { nonce, permissions });
      return { key: sessionKey, lose: () => lose(tenant, authorizer) };
    },
  };
}

function deleteIt({ api, root }: MatrixTenant, { id }: MadeApplication): Promise<unknown> {
  return api.deleteApplication(root.key, { id });
}

function disableIt({ api, root }: MatrixTenant, { id }: MadeApplication): Promise<unknown> {
  return api.disableApplication(root.key, { id });
}

function stripIt({ api, root }: MatrixTenant, { id }: MadeApplication): Promise<unknown> {
  return api.updateApplication(root.key, { id, name: "stripped", permissions: ["token:use"] });
}

const always = () => true;

/** All ways, by what happens to the caller. */
export const losses: Readonly<Record<string, Loss>> = {
  "is deleted": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(deleteIt),
  },
  "gets a new key": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(({ api, root }, { id }) => api.regenerateApplicationKey(root.key, { id })),
  },
  "is disabled": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(disableIt),
  },
  "loses its permission": {
    refusal: 403,
    appliesTo: (method) => accessOf(method).permission !== "",
    ...ofApplication(stripIt),
  },
  "loses what it hands on": {
    refusal: 403,
    appliesTo: ({ name }) => name === "AuthorizeSession",
    leavesAnswers: true,
    ...ofApplication(stripIt),
  },
  expires: {
    refusal: 401,
    appliesTo: always,
    async make(tenant, method) {
      const expiresAt = timestampFromMs(tenant.now() + minute);
      const permissions = permissionsFor(method);
      const { key } = await tenant.application(admittedType(method), permissions, { expiresAt });
      return { key, lose: async () => tenant.advance(minute) };
    },
  },
  "is a session that is deleted": ofSession(({ api, root }, { id }) =>
    api.deleteSession(root.key, { id }),
  ),
  "is a session that is revoked with all others": ofSession(({ api, root, shop }) =>
    api.revokeAllSessions(root.key, { id: shop.id }),
  ),
  "is a session that expires": ofSession(async (tenant) => tenant.advance(minute)),
  "is a session whose authorizer is deleted": ofAuthorizer(401, deleteIt),
  "is a session whose authorizer is disabled": ofAuthorizer(401, disableIt),
  "is a session whose authorizer loses the permission": ofAuthorizer(403, stripIt),
};

function permissionsFor(method: DescMethod): string[] {
  const { permission } = accessOf(method);
  return ["token:read", ...(permission === "" ? [] : [permission])];
}

/** Pauses the next change of a store before it is made. */
interface ChangeGate {
  wrap(store: Store): Store;
  /** Runs something before the next change or the next lookup of a stored response. */
  stopNext(happen: () => Promise<unknown>): void;
}

export function createChangeGate(): ChangeGate {
  let next: (() => Promise<unknown>) | undefined;

  function gated<A extends unknown[], R>(call: (...args: A) => Promise<R>) {
    return async (...args: A): Promise<R> => {
      const happen = next;
      next = undefined;
      await happen?.();
      return call(...args);
    };
  }

  return {
    stopNext(happen) {
      next = happen;
    },
    wrap: (store) => ({
      ...store,
      applications: {
        ...store.applications,
        create: gated(store.applications.create),
        update: gated(store.applications.update),
        delete: gated(store.applications.delete),
      },
      sessions: {
        ...store.sessions,
        create: gated(store.sessions.create),
        authorize: gated(store.sessions.authorize),
        delete: gated(store.sessions.delete),
      },
      responses: { ...store.responses, find: gated(store.responses.find) },
    }),
  };
}
