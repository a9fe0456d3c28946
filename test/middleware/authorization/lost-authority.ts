import type { DescMethod } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { accessOf } from "../../../src/contract/methods.js";
import type { Store } from "../../../src/store/port/store.js";
import { type CreatedApplication, getAdmittedType, type MatrixTenant } from "./tenant.js";

/** Shorter than the lifetime of an unauthorized session. */
const minute = 60_000;

/** A caller that can lose its authority. */
interface RevocableCaller {
  readonly key: string;
  lose(): Promise<unknown>;
}

/** A way for a caller to lose its authority during a call. */
export interface Loss {
  /** The status of the refusal. */
  readonly refusal: 401 | 403;
  appliesTo(method: DescMethod): boolean;
  /** Whether the caller may still replay an earlier response. */
  readonly allowsReplay?: boolean;
  createCaller(tenant: MatrixTenant, method: DescMethod): Promise<RevocableCaller>;
}

/** An application loses its authority through a manager. */
function ofApplication(
  lose: (tenant: MatrixTenant, caller: CreatedApplication) => Promise<unknown>,
): Pick<Loss, "createCaller"> {
  return {
    async createCaller(tenant, method) {
      const caller = await tenant.createApplication(
        getAdmittedType(method),
        permissionsFor(method),
      );
      return { key: caller.key, lose: () => lose(tenant, caller) };
    },
  };
}

function ofSession(
  lose: (tenant: MatrixTenant, session: { readonly id: string }) => Promise<unknown>,
): Loss {
  return {
    refusal: 401,
    appliesTo: (method) => accessOf(method).permission === "session:delete",
    async createCaller(tenant, method) {
      const expiresAt = timestampFromMs(tenant.now() + minute);
      const session = await tenant.createSession(permissionsFor(method), { expiresAt });
      return { key: session.sessionKey, lose: () => lose(tenant, session) };
    },
  };
}

/** A session loses its authority through its authorizer. */
function ofAuthorizer(
  refusal: Loss["refusal"],
  lose: (tenant: MatrixTenant, authorizer: CreatedApplication) => Promise<unknown>,
): Loss {
  return {
    ...ofSession(async () => {}),
    refusal,
    async createCaller(tenant, method) {
      const { api, shop } = tenant;
      const permissions = permissionsFor(method);
      const authorizer = await tenant.createApplication("private", permissions);
      const { sessionKey, nonce } = await api.createSession(shop.key);
      await api.authorizeSession(authorizer.key, { nonce, permissions });
      return { key: sessionKey, lose: () => lose(tenant, authorizer) };
    },
  };
}

function deleteApplication(
  { api, root }: MatrixTenant,
  { id }: CreatedApplication,
): Promise<unknown> {
  return api.deleteApplication(root.key, { id });
}

function disableApplication(
  { api, root }: MatrixTenant,
  { id }: CreatedApplication,
): Promise<unknown> {
  return api.disableApplication(root.key, { id });
}

function removePermissions(
  { api, root }: MatrixTenant,
  { id }: CreatedApplication,
): Promise<unknown> {
  return api.updateApplication(root.key, { id, name: "changed", permissions: ["token:use"] });
}

const always = () => true;

/** By what happens to the caller, for test titles. */
export const losses: Readonly<Record<string, Loss>> = {
  "is deleted": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(deleteApplication),
  },
  "gets a new key": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(({ api, root }, { id }) => api.regenerateApplicationKey(root.key, { id })),
  },
  "is disabled": {
    refusal: 401,
    appliesTo: always,
    ...ofApplication(disableApplication),
  },
  "loses its permission": {
    refusal: 403,
    appliesTo: (method) => accessOf(method).permission !== "",
    ...ofApplication(removePermissions),
  },
  "loses a permission that it grants to the session": {
    refusal: 403,
    appliesTo: ({ name }) => name === "AuthorizeSession",
    allowsReplay: true,
    ...ofApplication(removePermissions),
  },
  expires: {
    refusal: 401,
    appliesTo: always,
    async createCaller(tenant, method) {
      const expiresAt = timestampFromMs(tenant.now() + minute);
      const permissions = permissionsFor(method);
      // A private application that expires cannot give grants to one that does not.
      const gives = ["CreateApplication", "RegenerateApplicationKey"].includes(method.name);
      const type = gives ? "management" : getAdmittedType(method);
      const { key } = await tenant.createApplication(type, permissions, { expiresAt });
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
  "is a session whose authorizer is deleted": ofAuthorizer(401, deleteApplication),
  "is a session whose authorizer is disabled": ofAuthorizer(401, disableApplication),
  "is a session whose authorizer loses the permission": ofAuthorizer(403, removePermissions),
};

function permissionsFor(method: DescMethod): string[] {
  const { permission } = accessOf(method);
  return ["token:read", ...(permission === "" ? [] : [permission])];
}

/** Runs a callback before the next change of a store. */
interface ChangeGate {
  wrap(store: Store): Store;
  /** Also applies to the next lookup of a stored response. */
  beforeNext(run: () => Promise<unknown>): void;
}

export function createChangeGate(): ChangeGate {
  let next: (() => Promise<unknown>) | undefined;

  function gated<A extends unknown[], R>(call: (...args: A) => Promise<R>) {
    return async (...args: A): Promise<R> => {
      const run = next;
      next = undefined;
      await run?.();
      return call(...args);
    };
  }

  return {
    beforeNext(run) {
      next = run;
    },
    wrap: (store) => ({
      ...store,
      change: gated(store.change) as Store["change"],
      responses: { ...store.responses, find: gated(store.responses.find) },
    }),
  };
}
