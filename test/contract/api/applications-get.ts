import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { type ApiSubject, createKeyFixtures } from "./fixtures.js";

export function describeGetApplication(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const { createTenant, openSession } = createKeyFixtures(subject);

  describe("getting an application", () => {
    it("returns it without its key, also for an id in upper case", async () => {
      const { root, publicApp } = await createTenant();
      const { key: _key, ...rest } = publicApp;
      expect(await api().getApplication(root.key, { id: publicApp.id })).toEqual(rest);
      expect(await api().getApplication(root.key, { id: publicApp.id.toUpperCase() })).toEqual(
        rest,
      );
    });

    it("returns the same 404 for another tenant's application as for a missing one", async () => {
      const { root } = await createTenant();
      const other = await server().createTenant();
      for (const id of [other.applicationId, newId(0)]) {
        const { message } = await expectRefused(
          api().getApplication(root.key, { id }),
          "application_not_found",
        );
        expect(message.replace(id, "…")).toContain("No application … in the tenant");
      }
    });

    it("refuses an id that is not a UUID", async () => {
      const root = await server().createTenant();
      const { errors } = await expectRefused(
        api().getApplication(root.key, { id: "42" }),
        "invalid_request",
      );
      expect(errors).toHaveProperty("id");
    });

    it("needs application:read", async () => {
      const { createApplication, publicApp } = await createTenant();
      const unprivileged = await createApplication("private", ["token:read"]);
      await expectRefused(api().getApplication(unprivileged.key, publicApp), "permission_denied");
    });
  });

  describe("getting an application by its key", () => {
    it("returns the application of the key, without the key", async () => {
      const { publicKey, publicApp } = await createTenant();
      const { key: _key, ...rest } = publicApp;
      expect(await api().getApplicationByKey(publicKey)).toEqual(rest);
    });

    it("returns the application that created the session if called with a session key", async () => {
      const tenant = await createTenant();
      const session = await openSession(tenant);
      const permissions = ["application:read"];
      await api().authorizeSession(tenant.privateKey, { nonce: session.nonce, permissions });
      expect(await api().getApplicationByKey(session.key)).toMatchObject({
        id: tenant.publicApp.id,
      });
    });

    it("needs application:read", async () => {
      const { createApplication } = await createTenant();
      const unprivileged = await createApplication("private", ["token:read"]);
      await expectRefused(api().getApplicationByKey(unprivileged.key), "permission_denied");
    });
  });
}
