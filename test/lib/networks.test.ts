import { BlockList, isIPv6 } from "node:net";
import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { callKey } from "../../src/auth/caller.js";
import { createAddressOf } from "../../src/auth/caller-address.js";
import { readSettings } from "../../src/config/settings.js";
import { Cancellation } from "../../src/lib/cancellation.js";
import {
  clientNetworkKey,
  formatAddress,
  isInAnyNetwork,
  type Network,
  parseAddress,
  parseNetwork,
} from "../../src/lib/networks.js";

function networkOf(text: string): Network {
  const network = parseNetwork(text);
  if ("problem" in network) {
    throw new Error(`${text} ${network.problem}`);
  }
  return network;
}

function holds(network: string, address: string): boolean {
  const read = parseAddress(address);
  return read !== undefined && isInAnyNetwork([networkOf(network)], read);
}

/** IPv4 and IPv6 addresses, many with zeros to shorten. */
const byte = fc.oneof(fc.constant(0), fc.nat(255));
const ipv4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join("."));
const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
const ipv6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((it) => it.toString(16)).join(":"));
const spelled = fc.oneof(ipv4, ipv6, fc.ipV4(), fc.ipV6());

describe("readAddress", () => {
  it("parses the canonical form back to the same address", () => {
    fc.assert(
      fc.property(spelled, (text) => {
        const shown = formatAddress(parseAddress(text) ?? []);
        expect(parseAddress(shown)).toEqual(parseAddress(text));
        expect(parseAddress(text.toUpperCase())).toEqual(parseAddress(text));
        expect(shown).toBe(formatAddress(parseAddress(shown) ?? []));
      }),
    );
  });

  it("agrees with Node on every address", () => {
    fc.assert(
      fc.property(ipv6, (text) => {
        const list = new BlockList();
        list.addAddress(text, "ipv6");
        const shown = formatAddress(parseAddress(text) ?? []);
        expect(list.check(shown, isIPv6(shown) ? "ipv6" : "ipv4")).toBe(true);
      }),
    );
  });

  it.each([
    ["2001:0DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
    ["fe80::1%eth0", "fe80::1"],
    ["::ffff:192.0.2.33", "192.0.2.33"],
    ["::FFFF:c000:0221", "192.0.2.33"],
    ["0:0:0:0:0:ffff:192.0.2.33", "192.0.2.33"],
    ["::ffff:127.0.0.1%lo", "127.0.0.1"],
    ["192.0.2.33", "192.0.2.33"],
  ])("reads %s as %s", (text, shown) => {
    expect(formatAddress(parseAddress(text) ?? [])).toBe(shown);
  });

  it.each([
    "",
    " ",
    "localhost",
    "256.0.0.1",
    "1.2.3",
    "01.2.3.4",
    "1.2.3.4 ",
    "1.2.3.4:80",
    "1.2.3.4%eth0",
    "::1::",
    ":::",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "::ffff:1.2.3.256",
    "[::1]",
    "10.0.0.0/8",
    "unknown",
  ])("refuses %p", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it("returns undefined for any other text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."0123456789abf:./%[]") }), (text) => {
        const address = parseAddress(text);
        expect([undefined, 4, 16]).toContain(address?.length);
        expect(address?.every((byte) => byte >= 0 && byte <= 255)).not.toBe(false);
      }),
    );
  });
});

describe("homeOf", () => {
  const homeIn = (text: string) => clientNetworkKey(parseAddress(text) ?? []);

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "20010db800010002/64"],
    ["2001:db8:1:2::1", "20010db800010002/64"],
    ["2001:db8:1:3::1", "20010db800010003/64"],
    ["fe80::1%eth0", "fe80000000000000/64"],
  ])("maps %s to %s", (address, home) => {
    expect(homeIn(address)).toBe(home);
  });

  it("is equal exactly for IPv6 addresses of the same /64", () => {
    fc.assert(
      fc.property(ipv6, ipv6, (one, other) => {
        fc.pre(![one, other].some((it) => it.startsWith("0:0:0:0:0:ffff:")));
        const halfOf = (text: string) => text.split(":").slice(0, 4).join(":");
        expect(homeIn(one) === homeIn(other)).toBe(halfOf(one) === halfOf(other));
        const neighbour = `${halfOf(one)}:${other.split(":").slice(4).join(":")}`;
        fc.pre(!neighbour.startsWith("0:0:0:0:0:ffff:"));
        expect(homeIn(neighbour)).toBe(homeIn(one));
      }),
    );
  });

  it("is the address itself for IPv4", () => {
    fc.assert(fc.property(ipv4, (text) => expect(homeIn(text)).toBe(text)));
  });
});

describe("readNetwork", () => {
  /** An address, a prefix length, and another address that is likely to be near. */
  const cases = fc.oneof(ipv4, ipv6).chain((text) => {
    const bits = isIPv6(text) ? 128 : 32;
    const near = (other: string) => [other, text.replace(/[^.:]*$/, "7"), text];
    return fc.record({
      start: fc.constant(text),
      prefix: fc.nat(bits),
      address: (bits === 32 ? ipv4 : ipv6).chain((it) => fc.constantFrom(...near(it))),
    });
  });

  it("contains the same addresses as Node's BlockList", () => {
    fc.assert(
      fc.property(cases, ({ start, prefix, address }) => {
        // Node puts IPv4-mapped addresses into networks of both families.
        fc.pre(![start, address].some((it) => it.startsWith("0:0:0:0:0:ffff:")));
        const kind = isIPv6(start) ? "ipv6" : "ipv4";
        const list = new BlockList();
        list.addSubnet(start, prefix, kind);
        expect(holds(meantBy(start, prefix), address)).toBe(list.check(address, kind));
      }),
      { numRuns: 300 },
    );
  });

  /** The network of the address, as named in the error for host bits. */
  function meantBy(start: string, prefix: number): string {
    const text = `${start}/${prefix}`;
    const network = parseNetwork(text);
    if (!("problem" in network)) {
      return text;
    }
    const [, meant = ""] = /use (\S+) for the network/.exec(network.problem) ?? [];
    expect(meant.endsWith(`/${prefix}`)).toBe(true);
    return meant;
  }

  it("refuses host bits and names the network and the address", () => {
    for (const [text, meant, alone] of [
      ["10.1.2.3/8", "10.0.0.0/8", "10.1.2.3"],
      ["10.1.2.3/31", "10.1.2.2/31", "10.1.2.3"],
      ["10.1.2.3/0", "0.0.0.0/0", "10.1.2.3"],
      ["2001:db8::1/32", "2001:db8::/32", "2001:db8::1"],
      ["2001:DB8:ffff::/33", "2001:db8:8000::/33", "2001:db8:ffff::"],
      ["::ffff:10.1.2.3/104", "10.0.0.0/8", "10.1.2.3"],
      ["::ffff:10.1.2.3/64", "::/64", "::ffff:a01:203"],
    ] as const) {
      const words = `use ${meant} for the network or ${alone} for one address`;
      expect(parseNetwork(text)).toEqual({ problem: expect.stringContaining(words) });
    }
  });

  it.each([
    ["203.0.113.7", "203.0.113.7", "203.0.113.6"],
    ["203.0.113.7/32", "203.0.113.7", "203.0.113.6"],
    ["2001:db8::7", "2001:DB8:0::7", "2001:db8::6"],
    ["203.0.113.0/24", "203.0.113.255", "203.0.114.0"],
    ["203.0.113.128/25", "203.0.113.128", "203.0.113.127"],
    ["0.0.0.0/0", "255.255.255.255", "::1"],
    ["::/0", "2001:db8::1", "10.0.0.1"],
    ["2001:db8::/32", "2001:db8:ffff::", "2001:db9::"],
    ["10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"],
    ["::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"],
    ["::ffff:10.1.2.3", "10.1.2.3", "10.1.2.4"],
    ["::ffff:0:0/96", "10.1.2.3", "::1"],
    ["fe80::/10", "fe80::1%eth0", "fec0::1"],
  ])("%s contains %s and not %s", (network, inside, outside) => {
    expect(holds(network, inside)).toBe(true);
    expect(holds(network, outside)).toBe(false);
  });

  it("names the range of prefixes", () => {
    for (const [text, most] of [
      ["10.0.0.0/33", 32],
      ["10.0.0.0/", 32],
      ["10.0.0.0/08", 32],
      ["10.0.0.0/-1", 32],
      ["10.0.0.0/255.0.0.0", 32],
      ["::/129", 128],
      ["::/1e1", 128],
      ["::/ 8", 128],
    ] as const) {
      expect(parseNetwork(text)).toEqual({ problem: `must have a prefix from /0 to /${most}` });
    }
  });

  it.each(["", "/8", "10.0.0/8", "300.0.0.0/8", "10.0.0.0/8/8", "fe80::%eth0/10", "*", ":/0"])(
    "refuses %p",
    (text) => {
      expect(parseNetwork(text)).toEqual({ problem: expect.stringMatching(/^must be a network/) });
    },
  );

  it("parses or explains any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."0123456789abf:./%") }), (text) => {
        const network = parseNetwork(text);
        expect(
          "problem" in network ? network.problem.length : network.prefix,
        ).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe("caller addresses", () => {
  /** The caller address by connection and header, with these trusted proxies. */
  function addressOf(address: string, forwarded?: string | string[], trusted = "10.0.0.0/8,::1") {
    const { trustedProxies } = readSettings({ TRUSTED_PROXIES: trusted });
    const headers = { "x-forwarded-for": forwarded as string };
    const cancellation = new Cancellation();
    const peer = { address, headers };
    const call = { requestId: "", startedAt: 0, peer, cancellation, protocol: "rest" } as const;
    const values = createContextValues().set(callKey, call);
    return createAddressOf(trustedProxies)({ values });
  }

  describe("the caller address", () => {
    it.each([
      ["203.0.113.7", "203.0.113.7"],
      ["::ffff:203.0.113.7", "203.0.113.7"],
      ["2001:DB8::7", "2001:db8::7"],
      ["fe80::1%eth0", "fe80::1"],
      ["", ""],
      ["/run/latchkey.sock", ""],
    ])("is the connection's address: %p is %p", (address, seen) => {
      expect(addressOf(address)).toBe(seen);
      expect(addressOf(address, "198.51.100.1")).toBe(seen);
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
    ])("comes from a trusted proxy's header: %s, %p is %s", (address, forwarded, seen) => {
      expect(addressOf(address, forwarded)).toBe(seen);
    });

    it("joins repeated headers into one list", () => {
      expect(addressOf("10.0.0.1", ["198.51.100.1", "198.51.100.2, 10.0.0.2"])).toBe(
        "198.51.100.2",
      );
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
    ])("ignores everything left of an invalid entry: %p is %p", (forwarded, seen) => {
      expect(addressOf("10.0.0.1", forwarded)).toBe(seen);
    });

    it("reads at most a fixed number of entries", () => {
      const proxies = (count: number) => Array<string>(count).fill("10.0.0.2").join(",");
      expect(addressOf("10.0.0.1", `198.51.100.1,${proxies(31)}`)).toBe("198.51.100.1");
      expect(addressOf("10.0.0.1", `198.51.100.1,${proxies(32)}`)).toBe("10.0.0.2");
    });

    const trusted = fc.ipV4().map((it) => it.replace(/^\d+/, "10"));
    const stranger = fc.nat(255).map((last) => `198.51.100.${last}`);

    it("is never an entry written by an untrusted caller", () => {
      fc.assert(
        fc.property(
          fc.array(fc.oneof(trusted, fc.ipV4(), fc.ipV6(), fc.string()), { minLength: 1 }),
          stranger,
          fc.array(trusted, { maxLength: 5 }),
          (written, client, proxies) => {
            const forwarded = [...written, client, ...proxies].join(", ");
            expect(addressOf("10.0.0.1", forwarded)).toBe(client);
            expect(addressOf(client, written.join(","))).toBe(client);
          },
        ),
      );
    });

    it("is a valid address or undefined for any header", () => {
      fc.assert(
        fc.property(fc.string(), fc.string(), (address, forwarded) => {
          expect(addressOf(address, forwarded)).toMatch(/^[0-9a-f.:]*$/);
          expect(addressOf("10.0.0.1", forwarded)).toMatch(/^[0-9a-f.:]+$/);
        }),
      );
    });
  });
});
