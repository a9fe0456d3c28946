import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { keyHoldersOf } from "./key-holders.js";
import type { ApiSubject } from "./subject.js";

/** An application by its id, or by its key. */
export function describeReading(subject: ApiSubject): void {
  const { server, api, refused } = subject;
  const { createTenant, openSession } = keyHoldersOf(subject);

  describe("getting an application", () => {
    it("returns it without its key, also for an id in upper case", async () => {
      const { root, publicOne } = await createTenant();
      const { key: _key, ...rest } = publicOne;
      expect(await api().getApplication(root.key, { id: publicOne.id })).toEqual(rest);
      expect(await api().getApplication(root.key, { id: publicOne.id.toUpperCase() })).toEqual(
        rest,
      );
    });

    it("returns the same 404 for another tenant's as for a missing one", async () => {
      const { root } = await createTenant();
      const other = await server().createTenant();
      for (const id of [other.applicationId, newId(0)]) {
        const { message } = await refused(
          api().getApplication(root.key, { id }),
          "application_not_found",
        );
        expect(message.replace(id, "…")).toContain("No application … in the tenant");
      }
    });

    it("refuses an id that is not a UUID", async () => {
      const root = await server().createTenant();
      const { errors } = await refused(
        api().getApplication(root.key, { id: "42" }),
        "invalid_request",
      );
      expect(errors).toHaveProperty("id");
    });

    it("needs application:read", async () => {
      const { make, publicOne } = await createTenant();
      const blind = await make("private", ["token:read"]);
      await refused(api().getApplication(blind.key, publicOne), "permission_denied");
    });
  });

  describe("getting an application by its key", () => {
    it("returns the application of the key, without the key", async () => {
      const { publicKey, publicOne } = await createTenant();
      const { key: _key, ...rest } = publicOne;
      expect(await api().getApplicationByKey(publicKey)).toEqual(rest);
    });

    it("returns to a session the application that created it", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      expect(await api().getApplicationByKey(session.key)).toMatchObject({
        id: tenant.publicOne.id,
      });
    });

    it("needs application:read", async () => {
      const { make } = await createTenant();
      const blind = await make("private", ["token:read"]);
      await refused(api().getApplicationByKey(blind.key), "permission_denied");
    });
  });
}
