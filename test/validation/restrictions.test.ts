import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createRestrictionCheck } from "../../src/contract/decisions/restrictions.js";
import type { ApplicationType } from "../../src/contract/grants.js";
import { findRestrictionViolations } from "../../src/validation/restrictions.js";

const noRestrictions = { allowedOrigins: [], allowedCidrs: [] };

/** Returns the validation messages by field. */
function validate(
  restrictions: Partial<typeof noRestrictions | Record<string, string[]>>,
  type = "public",
) {
  const violations = findRestrictionViolations(type as ApplicationType, {
    ...noRestrictions,
    ...restrictions,
  });
  return Object.fromEntries(violations.map(({ field, message }) => [field, message]));
}

describe("allowed origins", () => {
  it.each([
    "https://shop.example.com",
    "http://localhost:3000",
    "http://127.0.0.1",
    "http://[::1]:8080",
    "https://my_shop.example.com",
    "https://xn--bcher-kva.example",
    "https://*.shop.example",
    "http://*.eu.shop.example:8080",
  ])("accept %s", (origin) => {
    expect(validate({ allowedOrigins: [origin] })).toEqual({});
  });

  it.each([
    ["https://Shop.example.com", "https://shop.example.com"],
    ["https://shop.example.com:443", "https://shop.example.com"],
    ["http://shop.example.com:80", "http://shop.example.com"],
    ["https://shop.example.com:0443", "https://shop.example.com"],
    ["https://bücher.example", "https://xn--bcher-kva.example"],
    ["https://shop.example.com\\", "https://shop.example.com"],
    ["https://shop.exam\nple.com", "https://shop.example.com"],
    ["http://0x7f.1", "http://127.0.0.1"],
    ["http://[0:0::1]", "http://[::1]"],
  ])("refuse %p, which browsers send as %s", (origin, normalized) => {
    expect(validate({ allowedOrigins: ["https://a.example", origin] })).toEqual({
      "allowed_origins[1]": `must be written as browsers send it: ${normalized}`,
    });
  });

  it.each(["https://:80", "https://256.1.1.1", "https://a:99999", "https://a b", "null", "*"])(
    "refuse %p",
    (origin) => {
      expect(validate({ allowedOrigins: [origin] })).toEqual({
        "allowed_origins[0]": "must be a web origin, for example https://app.example.com",
      });
    },
  );

  it.each([
    "https://*",
    "https://*.example",
    "https://*.example:8080",
    "https://*shop.a.example",
    "https://shop*.a.example",
    "https://shop.*.a.example",
    "https://*.*.a.example",
    "https://**.a.example",
    "https://*.a.example.*",
    "https://*..a.example",
  ])("refuse the wildcard in %s", (origin) => {
    expect(validate({ allowedOrigins: [origin] })).toEqual({
      "allowed_origins[0]": expect.stringContaining("only as its leftmost label"),
    });
  });

  it.each([
    ["https://*.Shop.example", "https://*.shop.example"],
    ["https://*.shop.example:443", "https://*.shop.example"],
  ])("refuse %s, which browsers send as %s", (origin, normalized) => {
    expect(validate({ allowedOrigins: [origin] })).toEqual({
      "allowed_origins[0]": `must be written as browsers send it: ${normalized}`,
    });
  });

  it.each(["private", "management"])("are refused for %s applications with a reason", (type) => {
    const { allowed_origins: message, ...others } = validate(
      { allowedOrigins: ["https://shop.example.com"] },
      type,
    );
    expect(message).toContain(`use allowed_cidrs for a ${type} application`);
    expect(message).toContain("allowed_cidrs");
    expect(others).toEqual({});
  });

  it("accept exactly the origins of URLs", () => {
    fc.assert(
      fc.property(fc.webUrl({ validSchemes: ["http", "https"] }), (page) => {
        const { origin } = new URL(page);
        expect(validate({ allowedOrigins: [origin] })).toEqual({});
        expect(page === origin || validate({ allowedOrigins: [page] })).not.toEqual({});
      }),
    );
  });
});

describe("allowed networks", () => {
  it.each(["private", "public", "management"])(
    "are validated one by one for %s applications",
    (type) => {
      const allowedCidrs = ["10.0.0.0/8", "10.1.2.3/8", "2001:db8::/32", "1.2.3.4", "1.2.3.400"];
      expect(validate({ allowedCidrs }, type)).toEqual({
        "allowed_cidrs[1]": expect.stringContaining("use 10.0.0.0/8 for the network"),
        "allowed_cidrs[4]": expect.stringContaining("must be a network"),
      });
    },
  );
});

describe("the restriction check", () => {
  const createApplication = (
    version: number,
    allowedCidrs: string[],
    allowedOrigins: string[] = [],
  ) => ({
    id: "a",
    version,
    allowedCidrs,
    allowedOrigins,
  });

  it("uses the current version of an application", () => {
    const { allowsAddress } = createRestrictionCheck();
    for (let version = 1; version < 50; version++) {
      const allowed = createApplication(version, [`10.0.0.${version}`]);
      for (let times = 0; times < 3; times++) {
        expect(allowsAddress(allowed, `10.0.0.${version}`)).toBe(true);
        expect(allowsAddress(allowed, `10.0.0.${version - 1}`)).toBe(false);
      }
    }
  });

  it("allows exactly the subdomains of a wildcard origin", () => {
    const { allowsOrigin } = createRestrictionCheck();
    const allowed = ["https://*.a.example", "http://*.b.example:8080", "https://c.example"];
    const isAllowed = (origin: string) => allowsOrigin(createApplication(1, [], allowed), origin);
    expect(
      [
        "https://www.a.example",
        "https://eu.www.a.example",
        "https://my_shop-1.a.example",
        "https://xn--bcher-kva.a.example",
        "http://www.b.example:8080",
        "https://c.example",
      ].filter((origin) => !isAllowed(origin)),
    ).toEqual([]);
    expect(
      [
        "https://a.example",
        "https://.a.example",
        "https://*.a.example",
        "https://wwwa.example",
        "https://www.a.example.evil.example",
        "https://evil.example/.a.example",
        "https://evil.example#.a.example",
        "https://evil@www.a.example",
        "https://evil.example:1.a.example",
        "https://www..a.example",
        "https://WWW.a.example",
        "https://www.a.example.",
        "https://www.a.example:8443",
        "https://www.a.example:443",
        "http://www.a.example",
        "http://www.b.example",
        "https://www.c.example",
        "null",
      ].filter(isAllowed),
    ).toEqual([]);
  });

  it("names the origin first, and reads the address only if networks are restricted", () => {
    const { findDenial } = createRestrictionCheck();
    const origins = ["https://a.example"];
    const both = createApplication(1, ["10.0.0.0/8"], origins);
    const [origin] = origins;
    expect(findDenial(both, { origin: "https://b.example", address: "192.0.2.1" })).toBe(
      "origin_not_allowed",
    );
    expect(findDenial(both, { origin, address: "192.0.2.1" })).toBe("address_not_allowed");
    expect(findDenial(both, { origin, address: "10.0.0.1" })).toBeUndefined();
    const request = {
      get address(): string {
        throw new Error("The address was read.");
      },
    };
    expect(findDenial(createApplication(2, []), request)).toBeUndefined();
    expect(findDenial(createApplication(3, [], origins), request)).toBe("origin_not_allowed");
  });

  it("refuses an unknown origin or address unless there are no restrictions", () => {
    const { allowsAddress, allowsOrigin } = createRestrictionCheck();
    const anyNetwork = ["0.0.0.0/0", "::/0"];
    for (const address of [undefined, "", "unknown", "/run/app.sock", "10.0.0.1:port"]) {
      expect(allowsAddress(createApplication(1, anyNetwork), address)).toBe(false);
      expect(allowsAddress(createApplication(2, []), address)).toBe(true);
    }
    for (const origin of [undefined, "", "null", "https://a.example/", "https://A.example"]) {
      expect(allowsOrigin(createApplication(1, [], ["https://a.example"]), origin)).toBe(false);
      expect(allowsOrigin(createApplication(2, [], []), origin)).toBe(true);
    }
    expect(allowsOrigin(createApplication(1, [], ["https://a.example"]), "https://a.example")).toBe(
      true,
    );
  });
});
