import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  type Event,
  EventSchema,
  ListEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { newId } from "../../../src/lib/uuid.js";
import { until } from "../../support/until.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, seedTenant, type Tenant, tokenRead } from "./fixtures.js";

const minute = 60_000;

export function describeListEvents({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());

  async function list({ root }: Tenant, request = {}) {
    return expectValid(ListEventsResponseSchema, await api().listEvents(root.key, request));
  }

  const toKinds = (events: readonly Event[]) => events.map(({ kind }) => kind);

  describe("listing events", () => {
    it("returns the newest first, page by page, with a cursor", async () => {
      const tenant = await createTenant();
      for (const name of ["first", "second", "third"]) {
        server().clock.advance(1);
        const { id } = tenant.shop;
        await api().updateApplication(tenant.root.key, { id, name, ...tokenRead });
      }
      const all = await list(tenant);
      expect(all.pagination).toMatchObject({ pageSize: 20 });
      expect(all.pagination?.next).toBeUndefined();
      expect(all.data.map(({ after }) => after?.name)).toEqual([
        "third",
        "second",
        "first",
        "public one",
        "private one",
        "Bootstrap",
      ]);

      const byCursor: Event[] = [];
      let start: string | undefined;
      do {
        const { pagination, data } = await list(tenant, { size: 4, start });
        expect(pagination?.pageSize).toBe(4);
        expect(pagination?.totalItems).toBeUndefined();
        byCursor.push(...data);
        start = pagination?.next;
      } while (start !== undefined);
      expect(byCursor).toEqual(all.data);
    });

    it("counts the matching events on request, on the first page", async () => {
      const tenant = await createTenant();
      const request = { size: 2, kind: ["application.created"], includeTotal: true };
      const { pagination } = await list(tenant, request);
      expect(pagination).toMatchObject({ totalItems: 3, totalPages: 2 });
      const second = await list(tenant, { ...request, start: pagination?.next });
      expect(second.pagination?.totalItems).toBeUndefined();
    });

    it("continues from a cursor while events are added", async () => {
      const tenant = await createTenant();
      const { data } = await list(tenant);
      const first = await list(tenant, { size: 1 });
      await api().disableApplication(tenant.root.key, tenant.shop);
      const second = await list(tenant, { size: 1, start: first.pagination?.next });
      expect([...first.data, ...second.data]).toEqual(data.slice(0, 2));
    });

    it("filters by target: an application, a session or a key", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { id: sessionId, nonce } = await api().createSession(shop.key);
      await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      await api().regenerateApplicationKey(root.key, shop);
      const [key] = (await api().listApplicationKeys(root.key, shop)).data;
      const kinds = async (target = "") => toKinds((await list(tenant, { target })).data);
      const sessionKinds = ["session.authorized"];
      expect(await kinds(shop.id)).toEqual([
        "key.regenerated",
        ...sessionKinds,
        "application.created",
      ]);
      expect(await kinds(shop.id.toUpperCase())).toHaveLength(3);
      expect(await kinds(sessionId)).toEqual(sessionKinds);
      expect(await kinds(key?.id)).toEqual(["key.regenerated"]);
      expect(await kinds(newId(0))).toEqual([]);
    });

    it("filters by actor: an application or a key", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { nonce } = await api().createSession(shop.key);
      await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      const [key] = (await api().listApplicationKeys(root.key, backend)).data;
      for (const actor of [backend.id, key?.id, backend.id.toUpperCase()]) {
        expect(toKinds((await list(tenant, { actor })).data)).toEqual(["session.authorized"]);
      }
      const byRoot = await list(tenant, { actor: root.applicationId });
      expect(toKinds(byRoot.data)).toEqual(["application.created", "application.created"]);
    });

    it("filters by principal: everything that it did or that was done to it", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { id: sessionId, nonce } = await api().createSession(shop.key);
      await api().authorizeSession(backend.key, { nonce, ...tokenRead });
      await api().disableApplication(root.key, backend);
      const [key] = (await api().listApplicationKeys(root.key, backend)).data;
      const kinds = async (request: object) => toKinds((await list(tenant, request)).data);
      const ofBackend = ["application.disabled", "session.authorized", "application.created"];
      for (const id of [backend.id, backend.id.toUpperCase()]) {
        expect(await kinds({ principal: id })).toEqual(ofBackend);
      }
      expect(await kinds({ principal: key?.id })).toEqual([
        "session.authorized",
        "application.created",
      ]);
      expect(await kinds({ principal: sessionId })).toEqual(["session.authorized"]);
      expect(await kinds({ principal: newId(0) })).toEqual([]);
      const [kind] = ofBackend;
      expect(await kinds({ principal: backend.id, kind: [kind] })).toEqual([kind]);
      expect(await kinds({ principal: backend.id, actor: backend.id })).toEqual([
        "session.authorized",
      ]);
      const first = await list(tenant, { principal: backend.id, size: 2, includeTotal: true });
      expect(first.pagination).toMatchObject({ totalItems: 3, totalPages: 2 });
      const start = first.pagination?.next;
      const second = await list(tenant, { principal: backend.id, size: 2, start });
      expect(toKinds([...first.data, ...second.data])).toEqual(ofBackend);
    });

    it("filters by request id, address, method and reason of a refused call", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      await api().disableApplication(root.key, shop);
      const refused = api().deleteApplication(backend.key, shop);
      const { requestId } = await expectRefused(refused, "permission_denied");
      const method = "latchkey.v1.ApplicationService/DeleteApplication";
      await until(
        async () => (await list(tenant, { reason: "permission_denied" })).data.length > 0,
      );
      const [denied] = (await list(tenant, { kind: ["access.denied"] })).data;
      for (const request of [
        { requestId },
        { method },
        { method: "DeleteApplication" },
        { reason: "permission_denied" },
        { requestId, method, address: "127.0.0.1", principal: backend.id },
        { kind: ["access.denied", "application.deleted"], address: "::ffff:127.0.0.1" },
        { requestId, address: "127.0.0.1:4711" },
      ]) {
        expect([request, (await list(tenant, request)).data]).toEqual([request, [denied]]);
      }
      for (const request of [
        { requestId: `${requestId}0` },
        { address: "127.0.0.2" },
        { method: "latchkey.v1.SessionService/DeleteApplication" },
        { reason: "expired" },
        { requestId, reason: "expired" },
      ]) {
        expect([request, (await list(tenant, request)).data]).toEqual([request, []]);
      }
      expect(toKinds((await list(tenant, { method: "DisableApplication" })).data)).toEqual([
        "application.disabled",
      ]);
    });

    it("filters by one or several kinds, and combines filters", async () => {
      const tenant = await createTenant();
      const { root, shop, backend } = tenant;
      await api().disableApplication(root.key, shop);
      await api().disableApplication(root.key, backend);
      await api().enableApplication(root.key, backend);
      const [kind, enabled] = ["application.disabled", "application.enabled"];
      expect(toKinds((await list(tenant, { kind: [kind] })).data)).toEqual([kind, kind]);
      const several = await list(tenant, { kind: [kind, enabled, "application.deleted"] });
      expect(toKinds(several.data)).toEqual([enabled, kind, kind]);
      const shopFilter = { kind: [kind], target: shop.id };
      expect((await list(tenant, shopFilter)).data).toMatchObject([
        { kind, target: { applicationId: shop.id } },
      ]);
      expect((await list(tenant, { ...shopFilter, actor: shop.id })).data).toEqual([]);
      expect((await list(tenant, { ...shopFilter, actor: root.applicationId })).data).toHaveLength(
        1,
      );
    });

    it("filters by time, including since and excluding until", async () => {
      const tenant = await createTenant();
      const start = server().clock.now();
      for (const name of ["one", "two", "three"]) {
        server().clock.advance(minute);
        const { id } = tenant.shop;
        await api().updateApplication(tenant.root.key, { id, name, ...tokenRead });
      }
      const at = (minutes: number, ms = 0) => timestampFromMs(start + minutes * minute + ms);
      const names = async (request: object) =>
        (await list(tenant, { target: tenant.shop.id, ...request })).data.map(
          ({ after }) => after?.name,
        );
      expect(await names({ since: at(2) })).toEqual(["three", "two"]);
      expect(await names({ since: at(2, 1) })).toEqual(["three"]);
      expect(await names({ since: at(1), until: at(3) })).toEqual(["two", "one"]);
      expect(await names({ until: at(1, 1) })).toEqual(["one", "public one"]);
      expect(await names({ since: at(3), until: at(1) })).toEqual([]);
      const anyTime = { since: timestampFromMs(-1e12), until: timestampFromMs(253402300799999) };
      expect(await names(anyTime)).toHaveLength(4);
    });

    it("returns nothing of other tenants, neither by id nor by cursor", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      await api().disableApplication(other.root.key, other.shop);
      for (const request of [{ target: other.shop.id }, { actor: other.root.applicationId }]) {
        expect((await list(tenant, request)).data).toEqual([]);
      }
      const { pagination } = await list(other, { size: 1 });
      const call = api().listEvents(tenant.root.key, { start: pagination?.next });
      expect(Object.keys((await expectRefused(call, "invalid_request")).errors)).toEqual(["start"]);
    });

    it("needs event:read, which no public application can hold", async () => {
      const { root, backend, shop, createApplication, openSession } = await createTenant();
      await expectRefused(api().listEvents(undefined), "unauthenticated");
      for (const { key } of [backend, shop, await openSession(tokenRead)]) {
        const { message } = await expectRefused(api().listEvents(key), "permission_denied");
        expect(message).toContain("event:read");
      }
      const permissions = ["event:read"];
      await expectRefused(createApplication("public", { permissions }), "invalid_request");
      const [reader, manager] = [
        await createApplication("private", { permissions }),
        await createApplication("management", { permissions }),
      ];
      const { nonce, sessionKey } = await api().createSession(shop.key);
      await api().authorizeSession(reader.key, { nonce, permissions });
      for (const key of [root.key, reader.key, manager.key, sessionKey]) {
        await expect(api().listEvents(key)).resolves.toBeDefined();
      }
    });

    it.each<[name: string, field: string, request: object]>([
      ["a page of 0", "size", { size: 0 }],
      ["a page of 101", "size", { size: 101 }],
      ["a target that is not an id", "target", { target: "shop" }],
      ["an actor that is not an id", "actor", { actor: "42" }],
      ["an unknown kind", "kind[1]", { kind: ["application.created", "application.renamed"] }],
      ["a principal that is not an id", "principal", { principal: "shop" }],
      ["an address that is none", "address", { address: "203.0.113.0/24" }],
      ["a method that is none", "method", { method: "Update.*" }],
      ["a request id of 65 characters", "request_id", { requestId: "a".repeat(65) }],
      ["an invented cursor", "start", { start: "AAAA" }],
      ["a cursor of 1,000 characters", "start", { start: "A".repeat(1_000) }],
    ])("refuses %s", async (_case, field, request) => {
      const { key } = await server().createTenant();
      const { errors } = await expectRefused(api().listEvents(key, request), "invalid_request");
      expect(Object.keys(errors)).toEqual([field]);
    });
  });

  describe("an event", () => {
    it("is returned by its id, to callers with event:read", async () => {
      const tenant = await createTenant();
      const { root, backend, createApplication } = tenant;
      const { data } = await list(tenant);
      const reader = await createApplication("private", { permissions: ["event:read"] });
      for (const event of data) {
        for (const id of [event.id, event.id.toUpperCase()]) {
          const found = await api().getEvent(reader.key, { id });
          expect(expectValid(EventSchema, found)).toEqual(event);
        }
      }
      const { id = "" } = data[0] ?? {};
      await expectRefused(api().getEvent(backend.key, { id }), "permission_denied");
      await expectRefused(api().getEvent(root.key, { id: "shop" }), "invalid_request");
    });

    it("is not found in another tenant, nor if it does not exist", async () => {
      const [tenant, other] = [await createTenant(), await createTenant()];
      const [event] = (await list(other)).data;
      for (const id of [event?.id ?? "", newId(0), newId(server().clock.now())]) {
        await expectRefused(api().getEvent(tenant.root.key, { id }), "event_not_found");
      }
    });
  });
}
