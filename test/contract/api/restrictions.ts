import { describe, expect, it } from "@jest/globals";
import { type ApiSubject, seedTenant, tokenRead } from "./fixtures.js";
import { describeRestrictionChecks } from "./restrictions-checks.js";

const shopOrigin = "https://shop.example.com";
const otherOrigin = "https://shop.example.net";
const allowedOrigins = [shopOrigin, "http://localhost:3000"];
/** Networks that include the address of these tests. */
const localCidrs = ["10.0.0.0/8", "127.0.0.0/8"];
const otherCidrs = ["10.0.0.0/8", "2001:db8::/32"];

/** A key with the Origin header of a web page. */
const from = (origin: string, key: string) => ({ key, headers: { origin } });

export function describeRestrictions(subject: ApiSubject): void {
  const { server, api, expectRefused } = subject;
  const createTenant = () => seedTenant(server(), api());

  describe("the key of an application with allowed origins", () => {
    it("works from these origins only", async () => {
      const { createApplication } = await createTenant();
      const { id, key } = await createApplication("public", { ...tokenRead, allowedOrigins });
      for (const origin of allowedOrigins) {
        expect(await api().whoAmI(from(origin, key))).toMatchObject({
          applicationId: id,
          allowedOrigins,
          allowedCidrs: [],
        });
      }
      for (const origin of [otherOrigin, `${shopOrigin}:443`, `${shopOrigin}/`, "null"]) {
        const { message } = await expectRefused(
          api().whoAmI(from(origin, key)),
          "origin_not_allowed",
        );
        expect(message).toContain(`"${origin}"`);
        expect(message).not.toContain("localhost");
      }
    });

    it("works from every subdomain of a wildcard origin", async () => {
      const { createApplication } = await createTenant();
      const wildcard = ["https://*.shop.example"];
      const { key } = await createApplication("public", { ...tokenRead, allowedOrigins: wildcard });
      for (const origin of ["https://www.shop.example", "https://eu.www.shop.example"]) {
        await expect(api().whoAmI(from(origin, key))).resolves.toMatchObject({
          allowedOrigins: wildcard,
        });
      }
      for (const origin of ["https://shop.example", "https://*.shop.example", shopOrigin]) {
        await expectRefused(api().whoAmI(from(origin, key)), "origin_not_allowed");
      }
    });

    it("is refused without an origin", async () => {
      const { createApplication } = await createTenant();
      const { key } = await createApplication("public", { ...tokenRead, allowedOrigins });
      const { message } = await expectRefused(api().whoAmI(key), "origin_not_allowed");
      expect(message).toContain("no Origin header");
      expect(message).not.toContain(shopOrigin);
    });

    it("is authenticated before the origin is checked", async () => {
      const { root, createApplication } = await createTenant();
      const { id, key } = await createApplication("public", { ...tokenRead, allowedOrigins });
      await api().regenerateApplicationKey(root.key, { id });
      await expectRefused(api().whoAmI(key), "unauthenticated");
    });

    it("creates sessions that work from these origins only, authorized or not", async () => {
      const { createApplication, openSession } = await createTenant();
      const { key } = await createApplication("public", { ...tokenRead, allowedOrigins });
      await expectRefused(
        openSession(undefined, { key: from(otherOrigin, key) }),
        "origin_not_allowed",
      );
      const shop = { key: from(shopOrigin, key) };
      for (const session of [
        await openSession(undefined, shop),
        await openSession(tokenRead, shop),
      ]) {
        expect(await api().whoAmI(from(shopOrigin, session.key))).toMatchObject({
          kind: "session",
          allowedOrigins,
        });
        await expectRefused(api().whoAmI(from(otherOrigin, session.key)), "origin_not_allowed");
        await expectRefused(api().whoAmI(session.key), "origin_not_allowed");
      }
    });

    it("reflects each change at once, and so do its sessions", async () => {
      const { root, createApplication, openSession } = await createTenant();
      const { id, key } = await createApplication("public", { ...tokenRead });
      const session = await openSession(tokenRead, { key });
      const keys = [key, session.key];
      const update = { id, name: "shop", ...tokenRead };
      await api().updateApplication(root.key, { ...update, allowedOrigins: [otherOrigin] });
      for (const key of keys) {
        await expectRefused(api().whoAmI(from(shopOrigin, key)), "origin_not_allowed");
      }
      await api().updateApplication(root.key, { ...update, allowedOrigins });
      for (const key of keys) {
        await expect(api().whoAmI(from(shopOrigin, key))).resolves.toBeDefined();
      }
      await api().updateApplication(root.key, { ...update, updateMask: mask("allowed_origins") });
      for (const key of keys) {
        await expect(api().whoAmI(key)).resolves.toMatchObject({ allowedOrigins: [] });
      }
    });
  });

  describe("the key of an application with allowed networks", () => {
    it.each(["private", "public", "management"])(
      "works from these networks only, as %s",
      async (type) => {
        const { createApplication } = await createTenant();
        const denied = await createApplication(type, { ...tokenRead, allowedCidrs: otherCidrs });
        const { message } = await expectRefused(api().whoAmI(denied.key), "address_not_allowed");
        expect(message).toContain("the address 127.0.0.1");
        expect(message).not.toContain("10.0.0.0");
        const allowed = await createApplication(type, { ...tokenRead, allowedCidrs: localCidrs });
        expect(await api().whoAmI(allowed.key)).toMatchObject({
          applicationId: allowed.id,
          allowedOrigins: [],
          allowedCidrs: localCidrs,
        });
      },
    );

    it.each(["127.0.0.1", "127.0.0.1/32", "::ffff:127.0.0.1", "::ffff:127.0.0.0/104", "0.0.0.0/0"])(
      "works from 127.0.0.1 if %s is allowed",
      async (network) => {
        const { createApplication } = await createTenant();
        const { key } = await createApplication("private", {
          ...tokenRead,
          allowedCidrs: [network],
        });
        await expect(api().whoAmI(key)).resolves.toMatchObject({ allowedCidrs: [network] });
      },
    );

    it("creates sessions that work from these networks only, also after a change", async () => {
      const { root, createApplication, openSession } = await createTenant();
      const { id, key } = await createApplication("public", {
        ...tokenRead,
        allowedCidrs: localCidrs,
      });
      const session = await openSession(tokenRead, { key });
      expect(await api().whoAmI(session.key)).toMatchObject({ allowedCidrs: localCidrs });
      const update = { id, name: "shop", ...tokenRead };
      await api().updateApplication(root.key, { ...update, allowedCidrs: otherCidrs });
      await expectRefused(api().whoAmI(session.key), "address_not_allowed");
      await expectRefused(api().createSession(key), "address_not_allowed");
      await api().updateApplication(root.key, { ...update, updateMask: mask("allowed_cidrs") });
      await expect(api().whoAmI(session.key)).resolves.toMatchObject({ allowedCidrs: [] });
    });

    it("is checked by origin, then by address, then by permission", async () => {
      const { createApplication } = await createTenant();
      const both = { allowedOrigins, allowedCidrs: otherCidrs };
      const { key } = await createApplication("public", { ...tokenRead, ...both });
      await expectRefused(api().listApplications(key), "origin_not_allowed");
      await expectRefused(api().listApplications(from(shopOrigin, key)), "address_not_allowed");
      const allowed = await createApplication("public", {
        ...tokenRead,
        allowedOrigins,
        allowedCidrs: localCidrs,
      });
      await expectRefused(
        api().listApplications(from(shopOrigin, allowed.key)),
        "permission_denied",
      );
    });

    it("ignores address headers of an untrusted caller", async () => {
      const { createApplication } = await createTenant();
      const { key } = await createApplication("private", {
        ...tokenRead,
        allowedCidrs: otherCidrs,
      });
      for (const name of ["x-forwarded-for", "forwarded", "x-real-ip"]) {
        const headers = { [name]: name === "forwarded" ? "for=10.0.0.1" : "10.0.0.1" };
        await expectRefused(api().whoAmI({ key, headers }), "address_not_allowed");
      }
    });
  });

  describe("allowed origins and networks", () => {
    it("are returned as given", async () => {
      const { root } = await createTenant();
      const allowedCidrs = ["10.0.0.0/8", "2001:DB8::/32", "1.2.3.4", "::ffff:1.2.3.4"];
      const given = { name: "a", type: "public", ...tokenRead, allowedOrigins, allowedCidrs };
      const { id, ...created } = await api().createApplication(root.key, given);
      expect(created).toMatchObject({ allowedOrigins, allowedCidrs });
      expect(await api().getApplication(root.key, { id })).toMatchObject({
        allowedOrigins,
        allowedCidrs,
      });
    });

    it("stay unchanged if an update omits them", async () => {
      const { root, createApplication } = await createTenant();
      const { id, key } = await createApplication("public", {
        ...tokenRead,
        allowedOrigins,
        allowedCidrs: otherCidrs,
      });
      const update = { id, name: "renamed", permissions: ["token:create"] };
      const updated = await api().updateApplication(root.key, update);
      expect(updated).toMatchObject({ ...update, allowedOrigins, allowedCidrs: otherCidrs });
      await expectRefused(api().whoAmI(from(otherOrigin, key)), "origin_not_allowed");
      await expectRefused(api().whoAmI(from(shopOrigin, key)), "address_not_allowed");
    });

    it.each([
      ["allowed_origins", { allowedOrigins: [], allowedCidrs: localCidrs }],
      ["allowed_cidrs", { allowedOrigins, allowedCidrs: [] }],
    ])("are cleared individually: %s", async (path, expected) => {
      const { root, createApplication } = await createTenant();
      const { id } = await createApplication("public", {
        ...tokenRead,
        allowedOrigins,
        allowedCidrs: localCidrs,
      });
      const update = { id, name: "renamed", ...tokenRead, updateMask: mask(path) };
      expect(await api().updateApplication(root.key, update)).toMatchObject(expected);
      expect(await api().getApplication(root.key, { id })).toMatchObject(expected);
    });

    it.each<[name: string, type: string, given: object, field: string, detail: string]>([
      ["a path", "public", origins(`${shopOrigin}/`), "allowed_origins[0]", "without a path"],
      ["no scheme", "public", origins("shop.example.com"), "allowed_origins[0]", "an origin such"],
      ["a bare wildcard", "public", origins("*"), "allowed_origins[0]", "an origin such"],
      ["a default port", "public", origins(`${shopOrigin}:443`), "allowed_origins[0]", shopOrigin],
      ["capitals", "public", origins("https://Shop.example.com"), "allowed_origins[0]", shopOrigin],
      ["a wide wildcard", "public", origins("https://*.example"), "allowed_origins[0]", "leftmost"],
      ["a duplicate", "public", origins(shopOrigin, shopOrigin), "allowed_origins", "duplicates"],
      [
        "origins",
        "private",
        origins(shopOrigin),
        "allowed_origins",
        "only for public applications",
      ],
      [
        "origins",
        "management",
        origins(shopOrigin),
        "allowed_origins",
        "only for public applications",
      ],
      ["a name", "private", networks("10.0.0.0/8", "all"), "allowed_cidrs[1]", "a network such"],
      [
        "an invalid address",
        "private",
        networks("10.0.0.256"),
        "allowed_cidrs[0]",
        "a network such",
      ],
      ["a long prefix", "private", networks("10.0.0.0/33"), "allowed_cidrs[0]", "/0 to /32"],
      ["host bits", "private", networks("10.1.2.3/8"), "allowed_cidrs[0]", "use 10.0.0.0/8"],
      ["a zone", "private", networks("fe80::1%eth0"), "allowed_cidrs[0]", "a network such"],
    ])("are refused with %s for a %s application", async (_case, type, given, field, detail) => {
      const { root, createApplication } = await createTenant();
      const { id } = await createApplication(type, tokenRead);
      const request = { name: "a", ...tokenRead, ...given };
      for (const call of [
        () => api().createApplication(root.key, { type, ...request }),
        () => api().updateApplication(root.key, { id, ...request }),
      ]) {
        const { errors } = await expectRefused(call(), "invalid_request");
        expect(errors).toEqual({ [field]: [expect.stringContaining(detail)] });
      }
      expect(await api().getApplication(root.key, { id })).toMatchObject({
        name: `${type} one`,
        allowedOrigins: [],
        allowedCidrs: [],
      });
    });
  });

  describeRestrictionChecks(subject);
}

/** A field mask, which also replaces fields that are empty. */
function mask(...paths: string[]) {
  return { paths };
}

function origins(...allowedOrigins: string[]) {
  return { allowedOrigins };
}

function networks(...allowedCidrs: string[]) {
  return { allowedCidrs };
}
