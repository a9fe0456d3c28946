import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import {
  type CheckAccessResponse,
  CheckAccessResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Api, type Key, keyOf } from "../../support/api/api.js";
import type { CheckInit } from "../../support/api/checks.js";
import type { TestServer } from "../../support/service/server.js";
import { type ExpectRefused, expectValid } from "./assertions.js";

/** The server under test, and a client for one of its protocols. */
export interface ApiSubject {
  server(): TestServer;
  api(): Api;
  readonly expectRefused: ExpectRefused;
}

export interface GrantsInit {
  readonly permissions?: string[];
  readonly rules?: MessageInitShape<typeof AccessRuleSchema>[];
  readonly expiresAt?: Timestamp;
  readonly allowedOrigins?: string[];
  readonly allowedCidrs?: string[];
}

interface ApplicationInit extends GrantsInit {
  readonly externalId?: string;
}

export interface CreatedApplication {
  readonly id: string;
  readonly key: string;
}

/** The permissions of the backend, which it can grant to sessions. */
const backendPermissions = [
  "token:read",
  "token:use",
  "token:create",
  "application:read",
  "access:check",
];

/** Creates a tenant with a private application, the backend, and a public one, the shop. */
export async function seedTenant(server: TestServer, api: Api) {
  const root = await server.createTenant();

  async function createApplication(
    type: string,
    fields: ApplicationInit,
  ): Promise<CreatedApplication> {
    const request = { name: `${type} one`, type, ...fields };
    const created = await api.createApplication(root.key, request);
    return { id: created.id, key: keyOf(created) };
  }

  const backend = await createApplication("private", { permissions: backendPermissions });
  const shop = await createApplication("public", { permissions: ["token:create"] });

  /** Creates a session, and authorizes it if grants are given. */
  async function openSession(grants?: GrantsInit, application: { readonly key: Key } = shop) {
    const { sessionKey, nonce, expiresAt } = await api.createSession(application.key);
    if (grants) {
      await api.authorizeSession(backend.key, { nonce, ...grants });
    }
    return { key: sessionKey, nonce, expiresAt };
  }

  return { root, backend, shop, createApplication, openSession };
}

export type Tenant = Awaited<ReturnType<typeof seedTenant>>;

/** Tenants whose applications hold `token:read` and `application:read`. */
export function createKeyFixtures({ server, api }: ApiSubject) {
  async function createTenant() {
    const root = await server().createTenant();
    const createApplication = (type: string, permissions = ["token:read", "application:read"]) =>
      api().createApplication(root.key, { name: `${type} one`, type, permissions });
    const privateKey = keyOf(await createApplication("private"));
    const publicApp = await createApplication("public");
    return { root, createApplication, privateKey, publicKey: keyOf(publicApp), publicApp };
  }

  async function openSession(tenant: Awaited<ReturnType<typeof createTenant>>) {
    const session = await api().createSession(tenant.publicKey);
    return { ...session, key: session.sessionKey };
  }

  return { createTenant, openSession };
}

/** Tenants, and access checks with the root key of a tenant. */
export function createCheckFixtures({ server, api }: ApiSubject) {
  return {
    createTenant: () => seedTenant(server(), api()),

    async check(tenant: Tenant, request: CheckInit): Promise<CheckAccessResponse> {
      const response = await api().checkAccess(tenant.root.key, request);
      return expectValid(CheckAccessResponseSchema, response);
    },
  };
}

export const tokenRead = { permissions: ["token:read"] };

/** A rule for applications. */
export const containerRule = { priority: 1, container: "/pci/", transform: "mask", ...tokenRead };

/** A rule for sessions. */
export const sessionRule = {
  priority: 1,
  transform: "reveal",
  conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/" }],
  ...tokenRead,
};

export function without(field: keyof typeof containerRule) {
  return { ...containerRule, [field]: undefined };
}

export function withCondition(change: object) {
  const [condition] = sessionRule.conditions;
  return { rules: [{ ...sessionRule, conditions: [{ ...condition, ...change }] }] };
}
