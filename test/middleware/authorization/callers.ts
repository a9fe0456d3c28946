import type { DescMethod } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { generateKey } from "../../../src/auth/keys.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { newId } from "../../../src/lib/uuid.js";
import { getAdmittedType, type MatrixTenant } from "./tenant.js";

/** A kind of caller: a column of the matrix. */
export interface CallerColumn {
  readonly name: string;
  /** For the documentation page. */
  readonly description: string;
  /** The type of the key's owner; `undefined` for an invalid key. */
  getOwnerType(method: DescMethod): ApplicationType | "session" | undefined;
  /** Whether the key is expired, revoked or disabled. */
  readonly isInactive?: true;
  readonly isOtherTenant?: true;
  readonly hasNoPermissions?: true;
  /** The target, if it is not an ordinary one of the first tenant. */
  readonly specialTarget?: "more privileged" | "itself as last manager" | "itself as session";
  /** Creates the caller's key with these permissions. Keys that are to expire do so within an hour. */
  createKey(
    tenant: MatrixTenant,
    type: ApplicationType,
    permissions: string[],
  ): Promise<string | undefined>;
}

/** The clock advances by this much before the calls. */
export const expiryDelayMs = 3_600_000;

const noOwner = () => undefined;
const session = () => "session" as const;

function activeApplication(type: ApplicationType): CallerColumn {
  return {
    name: type,
    description: `${type} application`,
    getOwnerType: () => type,
    createKey: async (tenant, _type, permissions) =>
      (await tenant.createApplication(type, permissions)).key,
  };
}

/** An expired, revoked or disabled key of an application type that the method admits. */
function inactiveApplication(
  name: string,
  description: string,
  createKey: CallerColumn["createKey"],
): CallerColumn {
  return { name, description, getOwnerType: getAdmittedType, isInactive: true, createKey };
}

export const callerColumns: readonly CallerColumn[] = [
  {
    name: "no key",
    description: "sends no key",
    getOwnerType: noOwner,
    createKey: async () => undefined,
  },
  {
    name: "malformed",
    description: "sends text that is not a key",
    getOwnerType: noOwner,
    createKey: async () => "secret",
  },
  {
    name: "unknown",
    description: "sends a well-formed key that was never issued",
    getOwnerType: noOwner,
    createKey: async () => generateKey("prv", newId(0)),
  },
  activeApplication("public"),
  activeApplication("private"),
  activeApplication("management"),
  {
    name: "unauthorized session",
    description: "session that is not authorized yet and has no permissions",
    getOwnerType: session,
    hasNoPermissions: true,
    createKey: async (tenant) => (await tenant.createSession()).sessionKey,
  },
  {
    name: "session",
    description: "authorized session",
    getOwnerType: session,
    createKey: async (tenant, _type, permissions) =>
      (await tenant.createSession(permissions)).sessionKey,
  },
  {
    name: "own session",
    description: "session that is not authorized yet and acts on itself",
    getOwnerType: session,
    hasNoPermissions: true,
    specialTarget: "itself as session",
    createKey: async () => undefined,
  },
  inactiveApplication(
    "expired",
    "application that has expired",
    async (tenant, type, permissions) => {
      const expiresAt = timestampFromMs(tenant.now() + expiryDelayMs);
      return (await tenant.createApplication(type, permissions, { expiresAt })).key;
    },
  ),
  inactiveApplication(
    "replaced",
    "key that was replaced without a grace period",
    async (tenant, type, permissions) => {
      const { id, key } = await tenant.createApplication(type, permissions);
      await tenant.api.regenerateApplicationKey(tenant.root.key, { id });
      return key;
    },
  ),
  inactiveApplication(
    "after grace",
    "replaced key whose grace period has ended",
    async (tenant, ...options) => {
      const { id, key } = await tenant.createApplication(...options);
      const gracePeriod = durationFromMs(expiryDelayMs);
      await tenant.api.regenerateApplicationKey(tenant.root.key, { id, gracePeriod });
      return key;
    },
  ),
  inactiveApplication("deleted", "deleted application", async (tenant, ...options) => {
    const { id, key } = await tenant.createApplication(...options);
    await tenant.api.deleteApplication(tenant.root.key, { id });
    return key;
  }),
  inactiveApplication("disabled", "disabled application", async (tenant, ...options) => {
    const { id, key } = await tenant.createApplication(...options);
    await tenant.api.disableApplication(tenant.root.key, { id });
    return key;
  }),
  {
    name: "expired session",
    description: "authorized session that has expired",
    getOwnerType: session,
    isInactive: true,
    createKey: async (tenant, _type, permissions) => {
      const expiresAt = timestampFromMs(tenant.now() + expiryDelayMs);
      return (await tenant.createSession(permissions, { expiresAt })).sessionKey;
    },
  },
  {
    name: "deleted session",
    description: "authorized session that was deleted",
    getOwnerType: session,
    isInactive: true,
    createKey: async (tenant, _type, permissions) => {
      const { id, sessionKey } = await tenant.createSession(permissions);
      await tenant.api.deleteSession(tenant.root.key, { id });
      return sessionKey;
    },
  },
  {
    name: "other tenant",
    description: "application of another tenant, of a type that the method accepts",
    getOwnerType: getAdmittedType,
    isOtherTenant: true,
    createKey: async (tenant, type, permissions) =>
      (await tenant.createApplication(type, permissions)).key,
  },
  {
    name: "weaker",
    description:
      "application with the required permission that lacks another permission of this service held by its target",
    getOwnerType: getAdmittedType,
    specialTarget: "more privileged",
    createKey: async (tenant, type, permissions) =>
      (await tenant.createApplication(type, permissions)).key,
  },
  {
    name: "last manager",
    description:
      "management application with every permission of this service that acts on itself and is the only one that can create and update applications",
    getOwnerType: () => "management",
    specialTarget: "itself as last manager",
    createKey: async () => undefined,
  },
];
