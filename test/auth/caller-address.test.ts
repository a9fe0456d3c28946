import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createAddressOf } from "../../src/auth/caller-address.js";
import { readSettings } from "../../src/config/settings.js";

/** The caller address for a connection and a header, with these trusted proxies. */
function addressOf(address: string, forwarded?: string | string[], trusted = "10.0.0.0/8,::1") {
  const { trustedProxies } = readSettings({ TRUSTED_PROXIES: trusted });
  const headers = { "x-forwarded-for": forwarded as string };
  return createAddressOf(trustedProxies)({ address, headers });
}

describe("the caller address", () => {
  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["2001:DB8::7", "2001:db8::7"],
    ["fe80::1%eth0", "fe80::1"],
    ["", ""],
    ["/run/latchkey.sock", ""],
  ])("is the connection's address: %p is %p", (address, expected) => {
    expect(addressOf(address)).toBe(expected);
    expect(addressOf(address, "198.51.100.1")).toBe(expected);
  });

  it("ignores X-Forwarded-For without trusted proxies", () => {
    expect(addressOf("10.0.0.1", "198.51.100.1", "")).toBe("10.0.0.1");
    expect(addressOf("::1", "198.51.100.1", "")).toBe("::1");
  });

  it.each([
    ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["::1", "2001:DB8::7", "2001:db8::7"],
    ["::1", "::ffff:198.51.100.1", "198.51.100.1"],
    ["10.0.0.1", "fe80::7%eth0", "fe80::7"],
    ["10.0.0.1", "198.51.100.1, 10.0.0.3,10.0.0.2", "198.51.100.1"],
    ["10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
    ["10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"],
    ["10.0.0.1", "[2001:db8::7]", "2001:db8::7"],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", undefined, "10.0.0.1"],
  ])("is read from a trusted proxy's header: %s, %p is %s", (address, forwarded, expected) => {
    expect(addressOf(address, forwarded)).toBe(expected);
  });

  it("joins repeated headers into one list", () => {
    expect(addressOf("10.0.0.1", ["198.51.100.1", "198.51.100.2, 10.0.0.2"])).toBe("198.51.100.2");
  });

  it.each([
    ["198.51.100.1, , 10.0.0.2", "10.0.0.2"],
    ["198.51.100.1, unknown, 10.0.0.2", "10.0.0.2"],
    ["198.51.100.1, 10.0.0.256, 10.0.0.2", "10.0.0.2"],
    ["198.51.100.1, 10.0.0.2;10.0.0.3", "10.0.0.1"],
    ["198.51.100.1,", "10.0.0.1"],
    [`198.51.100.1, ${"1".repeat(10_000)}`, "10.0.0.1"],
    ["198.51.100.1, _hidden, 10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["198.51.100.1, 10.0.0.2:port", "10.0.0.1"],
  ])("ignores everything left of an invalid entry: %p is %p", (forwarded, expected) => {
    expect(addressOf("10.0.0.1", forwarded)).toBe(expected);
  });

  it("reads at most a fixed number of entries", () => {
    const proxies = (count: number) => Array<string>(count).fill("10.0.0.2").join(",");
    expect(addressOf("10.0.0.1", `198.51.100.1,${proxies(31)}`)).toBe("198.51.100.1");
    expect(addressOf("10.0.0.1", `198.51.100.1,${proxies(32)}`)).toBe("10.0.0.2");
  });

  const trusted = fc.ipV4().map((it) => it.replace(/^\d+/, "10"));
  const untrusted = fc.nat(255).map((last) => `198.51.100.${last}`);

  it("is never an entry written by an untrusted caller", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(trusted, fc.ipV4(), fc.ipV6(), fc.string()), { minLength: 1 }),
        untrusted,
        fc.array(trusted, { maxLength: 5 }),
        (written, client, proxies) => {
          const forwarded = [...written, client, ...proxies].join(", ");
          expect(addressOf("10.0.0.1", forwarded)).toBe(client);
          expect(addressOf(client, written.join(","))).toBe(client);
        },
      ),
    );
  });

  it("is a valid address or an empty string for any header", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (address, forwarded) => {
        expect(addressOf(address, forwarded)).toMatch(/^[0-9a-f.:]*$/);
        expect(addressOf("10.0.0.1", forwarded)).toMatch(/^[0-9a-f.:]+$/);
      }),
    );
  });
});
