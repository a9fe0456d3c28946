import { describe, expect, it } from "@jest/globals";
import { ListApplicationsResponseSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { newId } from "../../../src/lib/uuid.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, containerRule, createKeyFixtures, tokenRead } from "./fixtures.js";

export function describeListApplications(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant } = createKeyFixtures(subject);

  describe("listing applications", () => {
    async function createMany(count: number): Promise<[BootstrapResult, string[]]> {
      const root = await server().createTenant();
      const ids = [root.applicationId];
      for (let i = 0; i < count; i++) {
        server().clock.advance(1);
        const request = { name: `app ${i}`, type: "private", ...tokenRead };
        ids.unshift((await api().createApplication(root.key, request)).id);
      }
      return [root, ids];
    }

    it("returns the newest first, without keys, with pagination", async () => {
      const [root, ids] = await createMany(3);
      const { pagination, data } = await api().listApplications(root.key);
      expect(data.map(({ id }) => id)).toEqual(ids);
      expect(data.map(({ key }) => key)).toEqual(ids.map(() => undefined));
      expect(pagination).toMatchObject({
        totalItems: 4,
        pageNumber: 1,
        pageSize: 20,
        totalPages: 1,
      });
      expect(pagination?.next).toBeUndefined();
    });

    it("returns page by page, and nothing past the end", async () => {
      const [root, ids] = await createMany(4);
      const pages = await Promise.all(
        [1, 2, 3, 4].map((page) => api().listApplications(root.key, { page, size: 2 })),
      );
      const actual = pages.map(({ data }) => data.map(({ id }) => id));
      expect(actual).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4), []]);
      expect(pages[3]?.pagination).toMatchObject({ totalItems: 5, totalPages: 3, pageNumber: 4 });
      for (const page of pages) {
        expectValid(ListApplicationsResponseSchema, page);
      }
    });

    it("returns everything once by cursor", async () => {
      const [root, ids] = await createMany(4);
      const collected: string[] = [];
      let page = await api().listApplications(root.key, { size: 2 });
      for (;;) {
        collected.push(...page.data.map(({ id }) => id));
        const start = page.pagination?.next;
        if (start === undefined) {
          break;
        }
        page = await api().listApplications(root.key, { start, size: 2 });
        expect(page.pagination?.totalItems).toBeUndefined();
      }
      expect(collected).toEqual(ids);
    });

    it("returns large applications few at a time, to continue by cursor", async () => {
      const root = await server().createTenant();
      // Together over the limit of a page, each within the limits of an application.
      const rules = Array.from({ length: 100 }, (_, index) => ({
        ...containerRule,
        description: `${index} ${"x".repeat(430)}`,
      }));
      const ids = [root.applicationId];
      for (let count = 0; count < 30; count++) {
        server().clock.advance(1);
        const request = { name: `app ${count}`, type: "private", rules };
        ids.unshift((await api().createApplication(root.key, request)).id);
      }
      const idsOf = ({ data }: { readonly data: readonly { readonly id: string }[] }) =>
        data.map(({ id }) => id);
      const first = await api().listApplications(root.key, { page: 1, size: 30 });
      const { length } = first.data;
      expect(length).toBeLessThan(30);
      expect(idsOf(first)).toEqual(ids.slice(0, length));
      expect(first.pagination).toMatchObject({ totalItems: 31, totalPages: 2, pageNumber: 1 });
      const { next = "" } = first.pagination ?? {};
      const rest = await api().listApplications(root.key, { start: next, size: 100 });
      expect(idsOf(rest)).toEqual(ids.slice(length));
      const second = await api().listApplications(root.key, { page: 2, size: 30 });
      expect(idsOf(second)).toEqual(ids.slice(30));
    });

    it("returns only the requested ids", async () => {
      const [root, ids] = await createMany(3);
      const other = await server().createTenant();
      const wanted = [ids[2], ids[0], newId(0), other.applicationId] as string[];
      const { data, pagination } = await api().listApplications(root.key, { id: wanted });
      expect(data.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
      expect(pagination?.totalItems).toBe(2);
    });

    it("returns nothing of other tenants", async () => {
      const [root] = await createMany(1);
      const other = await server().createTenant();
      const { data } = await api().listApplications(other.key);
      expect(data.map(({ id }) => id)).toEqual([other.applicationId]);
      expect(root.tenantId).not.toBe(other.tenantId);
    });

    it.each<[name: string, field: string, request: object]>([
      ["page 0", "page", { page: 0 }],
      ["size 0", "size", { size: 0 }],
      ["size 101", "size", { size: 101 }],
      ["an id that is not a UUID", "id[1]", { id: [newId(0), "42"] }],
      ["an invented cursor", "start", { start: "abc" }],
      ["a page and a cursor", "request", { page: 1, start: "abc" }],
    ])("refuses %s", async (_case, field, request) => {
      const root = await server().createTenant();
      const call = api().listApplications(root.key, request);
      expect(Object.keys((await expectRefused(call, "invalid_request")).errors)).toContain(field);
    });

    it("refuses a cursor that was changed or belongs to another tenant", async () => {
      const [root] = await createMany(2);
      const next = (await api().listApplications(root.key, { size: 1 })).pagination?.next ?? "";
      const other = await server().createTenant();
      await expectRefused(api().listApplications(other.key, { start: next }), "invalid_request");
      const tampered = (next.startsWith("A") ? "B" : "A") + next.slice(1);
      await expectRefused(api().listApplications(root.key, { start: tampered }), "invalid_request");
    });

    it("needs application:read", async () => {
      const { createApplication } = await createTenant();
      const unprivileged = await createApplication("private", ["token:read"]);
      await expectRefused(api().listApplications(unprivileged.key), "permission_denied");
    });
  });
}
