import type { DescMessage } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { ListPermissionsRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  ListApplicationKeysRequestSchema,
  ListApplicationsRequestSchema,
  type Pagination,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { ListEventsRequestSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import type { Api } from "../../support/api/api.js";
import { type ApiSubject, seedTenant, type Tenant, tokenRead } from "./fixtures.js";

/** The fields of a list request that a cursor is not bound to. */
const pageFields = new Set(["page", "size", "start", "includeTotal"]);

interface ListCase {
  readonly method: string;
  readonly schema: DescMessage;
  /** The request of the first page. */
  readonly request?: (tenant: Tenant) => object;
  /** Another value of each filter. */
  readonly filters: (tenant: Tenant) => Readonly<Record<string, unknown>>;
  readonly list: (
    api: Api,
    key: string,
    request: object,
  ) => Promise<{ readonly data: readonly unknown[]; readonly pagination?: Pagination | undefined }>;
}

const time = timestampFromMs(Date.UTC(2026, 0));

const lists: readonly ListCase[] = [
  {
    method: "ListApplications",
    schema: ListApplicationsRequestSchema,
    filters: ({ backend, shop, root }) => ({
      id: [backend.id, shop.id],
      type: "private",
      status: "enabled",
      permission: "token:read",
      namePrefix: "p",
      expiresBefore: time,
      lastUsedBefore: time,
      order: "name",
      externalId: "shop",
      q: "one",
      createdBy: root.applicationId,
      neverUsed: true,
    }),
    list: (api, key, request) => api.listApplications(key, request),
  },
  {
    method: "ListApplicationKeys",
    schema: ListApplicationKeysRequestSchema,
    request: ({ backend }) => ({ id: backend.id }),
    filters: ({ shop }) => ({ id: shop.id }),
    list: (api, key, request) => api.listApplicationKeys(key, request as { id: string }),
  },
  {
    method: "ListSessions",
    schema: ListSessionsRequestSchema,
    filters: ({ shop, backend }) => ({
      applicationId: shop.id,
      state: "authorized",
      authorizedBy: backend.id,
    }),
    list: (api, key, request) => api.listSessions(key, request),
  },
  {
    method: "ListEvents",
    schema: ListEventsRequestSchema,
    filters: ({ shop }) => ({
      target: shop.id,
      actor: shop.id,
      kind: ["application.created"],
      since: time,
      until: timestampFromMs(Date.UTC(2100, 0)),
      principal: shop.id,
      requestId: "a",
      address: "127.0.0.1",
      method: "CreateApplication",
      reason: "permission_denied",
    }),
    list: (api, key, request) => api.listEvents(key, request),
  },
  {
    method: "ListPermissions",
    schema: ListPermissionsRequestSchema,
    filters: () => ({ type: "private" }),
    list: (api, key, request) => api.listPermissions(key, request),
  },
];

export function describeListCursors({ server, api, expectRefused }: ApiSubject): void {
  /** A tenant with two items of each list, one of them the second key of `backend`. */
  async function createTenant(): Promise<Tenant> {
    const tenant = await seedTenant(server(), api());
    await tenant.openSession(tokenRead);
    await tenant.openSession(tokenRead);
    const gracePeriod = { seconds: 3_600n, nanos: 0 };
    await api().regenerateApplicationKey(tenant.root.key, {
      id: tenant.backend.id,
      gracePeriod: { $typeName: "google.protobuf.Duration", ...gracePeriod },
    });
    return tenant;
  }

  describe.each(lists)("a cursor of $method", ({ schema, request, filters, list }) => {
    it("continues its list with another size, and is refused with other filters", async () => {
      const tenant = await createTenant();
      const { key } = tenant.root;
      const others = filters(tenant);
      const filterNames = schema.fields
        .map(({ localName }) => localName)
        .filter((name) => !pageFields.has(name));
      expect(Object.keys(others).sort()).toEqual(filterNames.sort());

      const first = { ...request?.(tenant), size: 1 };
      const start = (await list(api(), key, first)).pagination?.next as string;
      expect(start).toBeDefined();
      const { data } = await list(api(), key, { ...first, start, size: 100 });
      expect(data.length).toBeGreaterThan(0);
      for (const [name, value] of Object.entries(others)) {
        const call = list(api(), key, { ...first, start, [name]: value });
        const { errors } = await expectRefused(call, "invalid_request");
        expect([name, errors]).toEqual([
          name,
          { start: [expect.stringContaining("repeat the filters and the order of its request")] },
        ]);
      }
    });
  });

  describe("a cursor of a filtered list", () => {
    it("is refused without the filter, and with another value of it", async () => {
      const { root, createApplication } = await createTenant();
      await createApplication("private", tokenRead);
      const list = (request: object) => api().listApplications(root.key, { size: 1, ...request });
      const { pagination } = await list({ type: "private" });
      const start = pagination?.next as string;
      expect((await list({ type: "private", start })).data).toMatchObject([{ type: "private" }]);
      await expectRefused(list({ start }), "invalid_request");
      await expectRefused(list({ type: "public", start }), "invalid_request");
    });
  });
}
