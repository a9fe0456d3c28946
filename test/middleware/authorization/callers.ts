import type { DescMethod } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { generateKey } from "../../../src/auth/keys.js";
import type { ApplicationType } from "../../../src/contract/grants.js";
import { newId } from "../../../src/lib/uuid.js";
import { admittedType, type MatrixTenant } from "./tenant.js";

/** A kind of caller: a column of the matrix. */
export interface CallerColumn {
  readonly name: string;
  /** A description for the page. */
  readonly who: string;
  /** The type of the key's owner; `undefined` for an invalid key. */
  kindFor(method: DescMethod): ApplicationType | "session" | undefined;
  readonly isEnded?: true;
  readonly isElsewhere?: true;
  readonly holdsNothing?: true;
  /** A special target, if any. */
  readonly aim?: "what holds more" | "itself, the last manager";
  /** Creates the caller's key with these permissions. Keys that must expire do so within the next hour. */
  make(
    tenant: MatrixTenant,
    type: ApplicationType,
    permissions: string[],
  ): Promise<string | undefined>;
}

/** The clock advances by this before the calls. */
export const untilExpiry = 3_600_000;

const nobody = () => undefined;
const ofSession = () => "session" as const;

function living(type: ApplicationType): CallerColumn {
  return {
    name: type,
    who: `${type} application`,
    kindFor: () => type,
    make: async (tenant, _type, permissions) => (await tenant.application(type, permissions)).key,
  };
}

/** A revoked or expired key of an application that the method admits. */
function ended(name: string, who: string, make: CallerColumn["make"]): CallerColumn {
  return { name, who, kindFor: admittedType, isEnded: true, make };
}

export const callerColumns: readonly CallerColumn[] = [
  { name: "no key", who: "sends no key", kindFor: nobody, make: async () => undefined },
  {
    name: "malformed",
    who: "sends text that is not a key",
    kindFor: nobody,
    make: async () => "secret",
  },
  {
    name: "unknown",
    who: "sends a well-formed key that was never issued",
    kindFor: nobody,
    make: async () => generateKey("prv", newId(0)),
  },
  living("public"),
  living("private"),
  living("management"),
  {
    name: "unauthorized session",
    who: "session that is not authorized yet and has no permissions",
    kindFor: ofSession,
    holdsNothing: true,
    make: async (tenant) => (await tenant.session()).sessionKey,
  },
  {
    name: "session",
    who: "authorized session",
    kindFor: ofSession,
    make: async (tenant, _type, permissions) => (await tenant.session(permissions)).sessionKey,
  },
  ended("expired", "application that has expired", async (tenant, type, permissions) => {
    const expiresAt = timestampFromMs(tenant.now() + untilExpiry);
    return (await tenant.application(type, permissions, { expiresAt })).key;
  }),
  ended(
    "replaced",
    "key that was replaced without a grace period",
    async (tenant, type, permissions) => {
      const { id, key } = await tenant.application(type, permissions);
      await tenant.api.regenerateApplicationKey(tenant.root.key, { id });
      return key;
    },
  ),
  ended("after grace", "replaced key whose grace period has ended", async (tenant, ...made) => {
    const { id, key } = await tenant.application(...made);
    const gracePeriod = durationFromMs(untilExpiry);
    await tenant.api.regenerateApplicationKey(tenant.root.key, { id, gracePeriod });
    return key;
  }),
  ended("deleted", "deleted application", async (tenant, ...made) => {
    const { id, key } = await tenant.application(...made);
    await tenant.api.deleteApplication(tenant.root.key, { id });
    return key;
  }),
  ended("disabled", "disabled application", async (tenant, ...made) => {
    const { id, key } = await tenant.application(...made);
    await tenant.api.disableApplication(tenant.root.key, { id });
    return key;
  }),
  {
    name: "expired session",
    who: "authorized session that has expired",
    kindFor: ofSession,
    isEnded: true,
    make: async (tenant, _type, permissions) => {
      const expiresAt = timestampFromMs(tenant.now() + untilExpiry);
      return (await tenant.session(permissions, { expiresAt })).sessionKey;
    },
  },
  {
    name: "deleted session",
    who: "authorized session that was deleted",
    kindFor: ofSession,
    isEnded: true,
    make: async (tenant, _type, permissions) => {
      const { id, sessionKey } = await tenant.session(permissions);
      await tenant.api.deleteSession(tenant.root.key, { id });
      return sessionKey;
    },
  },
  {
    name: "other tenant",
    who: "application of another tenant, of a type that the method accepts",
    kindFor: admittedType,
    isElsewhere: true,
    make: async (tenant, type, permissions) => (await tenant.application(type, permissions)).key,
  },
  {
    name: "weaker",
    who: "application with the required permission that lacks another permission of this service held by its target",
    kindFor: admittedType,
    aim: "what holds more",
    make: async (tenant, type, permissions) => (await tenant.application(type, permissions)).key,
  },
  {
    name: "last manager",
    who: "management application with every permission of this service that acts on itself and is the only one that can create and update applications",
    kindFor: () => "management",
    aim: "itself, the last manager",
    make: async () => undefined,
  },
];
