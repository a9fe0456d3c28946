import { describe, expect, it } from "@jest/globals";
import { tokenRead } from "./grants.js";
import { describePlaceChecks } from "./origins-networks-checks.js";
import type { ApiSubject } from "./subject.js";
import { createTenant as fillTenant } from "./tenant.js";

const shopOrigin = "https://shop.example.com";
const otherOrigin = "https://shop.example.net";
const allowedOrigins = [shopOrigin, "http://localhost:3000"];
/** Where these tests call from. */
const here = ["10.0.0.0/8", "127.0.0.0/8"];
const elsewhere = ["10.0.0.0/8", "2001:db8::/32"];

/** A key as a web page uses it. */
const from = (origin: string, key: string) => ({ key, headers: { origin } });

/** Keys that may not be used from everywhere. */
export function describePlaces(subject: ApiSubject): void {
  const { server, api, refused } = subject;
  const createTenant = () => fillTenant(server(), api());

  describe("the key of an application with allowed origins", () => {
    it("works from these only", async () => {
      const { make } = await createTenant();
      const { id, key } = await make("public", { ...tokenRead, allowedOrigins });
      for (const origin of allowedOrigins) {
        expect(await api().whoAmI(from(origin, key))).toMatchObject({
          ...{ applicationId: id, allowedOrigins, allowedCidrs: [] },
        });
      }
      for (const origin of [otherOrigin, `${shopOrigin}:443`, `${shopOrigin}/`, "null"]) {
        const { message } = await refused(api().whoAmI(from(origin, key)), "origin_not_allowed");
        expect(message).toContain(`"${origin}"`);
        expect(message).not.toContain("localhost");
      }
    });

    it("works from every subdomain of a wildcard origin", async () => {
      const { make } = await createTenant();
      const wildcard = ["https://*.shop.example"];
      const { key } = await make("public", { ...tokenRead, allowedOrigins: wildcard });
      for (const origin of ["https://www.shop.example", "https://eu.www.shop.example"]) {
        await expect(api().whoAmI(from(origin, key))).resolves.toMatchObject({
          allowedOrigins: wildcard,
        });
      }
      for (const origin of ["https://shop.example", "https://*.shop.example", shopOrigin]) {
        await refused(api().whoAmI(from(origin, key)), "origin_not_allowed");
      }
    });

    it("is refused without an origin", async () => {
      const { make } = await createTenant();
      const { key } = await make("public", { ...tokenRead, allowedOrigins });
      const { message } = await refused(api().whoAmI(key), "origin_not_allowed");
      expect(message).toContain("no Origin header");
      expect(message).not.toContain(shopOrigin);
    });

    it("is authenticated first", async () => {
      const { root, make } = await createTenant();
      const { id, key } = await make("public", { ...tokenRead, allowedOrigins });
      await api().regenerateApplicationKey(root.key, { id });
      await refused(api().whoAmI(key), "unauthenticated");
    });

    it("creates sessions that work from these only, authorized or not", async () => {
      const { make, open } = await createTenant();
      const { key } = await make("public", { ...tokenRead, allowedOrigins });
      await refused(open(undefined, { key: from(otherOrigin, key) }), "origin_not_allowed");
      const shop = { key: from(shopOrigin, key) };
      for (const session of [await open(undefined, shop), await open(tokenRead, shop)]) {
        expect(await api().whoAmI(from(shopOrigin, session.key))).toMatchObject({
          ...{ kind: "session", allowedOrigins },
        });
        await refused(api().whoAmI(from(otherOrigin, session.key)), "origin_not_allowed");
        await refused(api().whoAmI(session.key), "origin_not_allowed");
      }
    });

    it("reflects each change at once, and so do its sessions", async () => {
      const { root, make, open } = await createTenant();
      const { id, key } = await make("public", { ...tokenRead });
      const session = await open(tokenRead, { key });
      const keys = [key, session.key];
      const update = { id, name: "shop", ...tokenRead };
      await api().updateApplication(root.key, { ...update, allowedOrigins: [otherOrigin] });
      for (const key of keys) {
        await refused(api().whoAmI(from(shopOrigin, key)), "origin_not_allowed");
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
    it.each(["private", "public", "management"])("works from these only, as %s", async (type) => {
      const { make } = await createTenant();
      const far = await make(type, { ...tokenRead, allowedCidrs: elsewhere });
      const { message } = await refused(api().whoAmI(far.key), "address_not_allowed");
      expect(message).toContain("the address 127.0.0.1");
      expect(message).not.toContain("10.0.0.0");
      const near = await make(type, { ...tokenRead, allowedCidrs: here });
      expect(await api().whoAmI(near.key)).toMatchObject({
        ...{ applicationId: near.id, allowedOrigins: [], allowedCidrs: here },
      });
    });

    it.each(["127.0.0.1", "127.0.0.1/32", "::ffff:127.0.0.1", "::ffff:127.0.0.0/104", "0.0.0.0/0"])(
      "works from here if %s is allowed",
      async (network) => {
        const { make } = await createTenant();
        const { key } = await make("private", { ...tokenRead, allowedCidrs: [network] });
        await expect(api().whoAmI(key)).resolves.toMatchObject({ allowedCidrs: [network] });
      },
    );

    it("creates sessions that work from these only, also after a change", async () => {
      const { root, make, open } = await createTenant();
      const { id, key } = await make("public", { ...tokenRead, allowedCidrs: here });
      const session = await open(tokenRead, { key });
      expect(await api().whoAmI(session.key)).toMatchObject({ allowedCidrs: here });
      const update = { id, name: "shop", ...tokenRead };
      await api().updateApplication(root.key, { ...update, allowedCidrs: elsewhere });
      await refused(api().whoAmI(session.key), "address_not_allowed");
      await refused(api().createSession(key), "address_not_allowed");
      await api().updateApplication(root.key, { ...update, updateMask: mask("allowed_cidrs") });
      await expect(api().whoAmI(session.key)).resolves.toMatchObject({ allowedCidrs: [] });
    });

    it("is checked by origin, then by address, then by permission", async () => {
      const { make } = await createTenant();
      const both = { allowedOrigins, allowedCidrs: elsewhere };
      const { key } = await make("public", { ...tokenRead, ...both });
      await refused(api().listApplications(key), "origin_not_allowed");
      await refused(api().listApplications(from(shopOrigin, key)), "address_not_allowed");
      const near = await make("public", { ...tokenRead, allowedOrigins, allowedCidrs: here });
      await refused(api().listApplications(from(shopOrigin, near.key)), "permission_denied");
    });

    it("ignores address headers of an untrusted caller", async () => {
      const { make } = await createTenant();
      const { key } = await make("private", { ...tokenRead, allowedCidrs: elsewhere });
      for (const name of ["x-forwarded-for", "forwarded", "x-real-ip"]) {
        const headers = { [name]: name === "forwarded" ? "for=10.0.0.1" : "10.0.0.1" };
        await refused(api().whoAmI({ key, headers }), "address_not_allowed");
      }
    });
  });

  describe("allowed origins and networks", () => {
    it("are returned as given", async () => {
      const { root } = await createTenant();
      const allowedCidrs = ["10.0.0.0/8", "2001:DB8::/32", "1.2.3.4", "::ffff:1.2.3.4"];
      const given = { name: "a", type: "public", ...tokenRead, allowedOrigins, allowedCidrs };
      const { id, ...made } = await api().createApplication(root.key, given);
      expect(made).toMatchObject({ allowedOrigins, allowedCidrs });
      expect(await api().getApplication(root.key, { id })).toMatchObject({
        ...{ allowedOrigins, allowedCidrs },
      });
    });

    it("stay unchanged if an update omits them", async () => {
      const { root, make } = await createTenant();
      const { id, key } = await make("public", {
        ...tokenRead,
        allowedOrigins,
        allowedCidrs: elsewhere,
      });
      const update = { id, name: "renamed", permissions: ["token:create"] };
      const updated = await api().updateApplication(root.key, update);
      expect(updated).toMatchObject({ ...update, allowedOrigins, allowedCidrs: elsewhere });
      await refused(api().whoAmI(from(otherOrigin, key)), "origin_not_allowed");
      await refused(api().whoAmI(from(shopOrigin, key)), "address_not_allowed");
    });

    it.each([
      ["allowed_origins", { allowedOrigins: [], allowedCidrs: here }],
      ["allowed_cidrs", { allowedOrigins, allowedCidrs: [] }],
    ])("are cleared one by one: %s", async (path, left) => {
      const { root, make } = await createTenant();
      const { id } = await make("public", { ...tokenRead, allowedOrigins, allowedCidrs: here });
      const update = { id, name: "renamed", ...tokenRead, updateMask: mask(path) };
      expect(await api().updateApplication(root.key, update)).toMatchObject(left);
      expect(await api().getApplication(root.key, { id })).toMatchObject(left);
    });

    it.each<[what: string, type: string, given: object, field: string, words: string]>([
      ["a path", "public", origins(`${shopOrigin}/`), "allowed_origins[0]", "without a path"],
      ["no scheme", "public", origins("shop.example.com"), "allowed_origins[0]", "an origin such"],
      ["everything", "public", origins("*"), "allowed_origins[0]", "an origin such"],
      ["a usual port", "public", origins(`${shopOrigin}:443`), "allowed_origins[0]", shopOrigin],
      ["capitals", "public", origins("https://Shop.example.com"), "allowed_origins[0]", shopOrigin],
      ["a wide wildcard", "public", origins("https://*.example"), "allowed_origins[0]", "leftmost"],
      ["one twice", "public", origins(shopOrigin, shopOrigin), "allowed_origins", "duplicates"],
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
      [
        "no network",
        "private",
        networks("10.0.0.0/8", "all"),
        "allowed_cidrs[1]",
        "a network such",
      ],
      ["no address", "private", networks("10.0.0.256"), "allowed_cidrs[0]", "a network such"],
      ["a long prefix", "private", networks("10.0.0.0/33"), "allowed_cidrs[0]", "/0 to /32"],
      ["more bits", "private", networks("10.1.2.3/8"), "allowed_cidrs[0]", "use 10.0.0.0/8"],
      ["a zone", "private", networks("fe80::1%eth0"), "allowed_cidrs[0]", "a network such"],
    ])("are refused with %s, of a %s application", async (_what, type, given, field, words) => {
      const { root, make } = await createTenant();
      const { id } = await make(type, tokenRead);
      const request = { name: "a", ...tokenRead, ...given };
      for (const call of [
        () => api().createApplication(root.key, { type, ...request }),
        () => api().updateApplication(root.key, { id, ...request }),
      ]) {
        const { errors } = await refused(call(), "invalid_request");
        expect(errors).toEqual({ [field]: [expect.stringContaining(words)] });
      }
      expect(await api().getApplication(root.key, { id })).toMatchObject({
        ...{ name: `${type} one`, allowedOrigins: [], allowedCidrs: [] },
      });
    });
  });

  describePlaceChecks(subject);
}

/** Names the fields to replace even where they are empty. */
function mask(...paths: string[]) {
  return { paths };
}

function origins(...allowedOrigins: string[]) {
  return { allowedOrigins };
}

function networks(...allowedCidrs: string[]) {
  return { allowedCidrs };
}
