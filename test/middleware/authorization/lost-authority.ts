import type { DescMethod } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { accessOf } from "../../../src/contract/methods.js";
import type { Store } from "../../../src/store/port/store.js";
import { welcomeKind } from "./expected-response.js";
import type { MadeApplication, MatrixTenant } from "./tenant.js";

/** Shorter than a session lives that is not authorized. */
const minute = 60_000;

/** A caller that can be made to lose its authority. */
export interface DoomedCaller {
  readonly key: string;
  lose(): Promise<unknown>;
}

/** A way in which the caller of a call that is under way loses its authority. */
export interface Loss {
  /** What the caller is then refused with. */
  readonly refusal: 401 | 403;
  /** Whether the caller of a method can lose it so. */
  appliesTo(method: DescMethod): boolean;
  /** Whether the caller then may have the answer again of what it did before. */
  readonly leavesAnswers?: boolean;
  make(tenant: MatrixTenant, method: DescMethod): Promise<DoomedCaller>;
}

/** What an application loses it by, which a manager of the tenant does. */
function ofApplication(
  lose: (tenant: MatrixTenant, caller: MadeApplication) => Promise<unknown>,
): Pick<Loss, "make"> {
  return {
    async make(tenant, method) {
      const caller = await tenant.application(welcomeKind(method), permissionsFor(method));
      return { key: caller.key, lose: () => lose(tenant, caller) };
    },
  };
}

/** What a session loses it by. */
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

/** What a session loses it by where its authorizer does. */
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

/** The ways there are, by what happens to the caller. */
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
      const { key } = await tenant.application(welcomeKind(method), permissions, { expiresAt });
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

/** Stops the next change that a store is asked for, before it is made. */
export interface ChangeGate {
  wrap(store: Store): Store;
  /** Has something happen first when the next change, or kept answer, is asked for. */
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
      answers: { ...store.answers, find: gated(store.answers.find) },
    }),
  };
}
