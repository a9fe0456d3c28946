import { BlockList, isIPv6 } from "node:net";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  clientNetworkKey,
  formatAddress,
  formatHostPort,
  isInAnyNetwork,
  isLoopback,
  type Network,
  parseAddress,
  parseNetwork,
  parsePeerAddress,
} from "../../src/lib/networks.js";

function mustParse(text: string): Network {
  const network = parseNetwork(text);
  if ("problem" in network) {
    throw new Error(`${text} ${network.problem}`);
  }
  return network;
}

function contains(network: string, address: string): boolean {
  const parsed = parseAddress(address);
  return parsed !== undefined && isInAnyNetwork([mustParse(network)], parsed);
}

/** IPv4 and IPv6 addresses, many with zeros to shorten. */
const byte = fc.oneof(fc.constant(0), fc.nat(255));
const ipv4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join("."));
const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
const ipv6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((it) => it.toString(16)).join(":"));
const anyAddress = fc.oneof(ipv4, ipv6, fc.ipV4(), fc.ipV6());

describe("parseAddress", () => {
  it("parses the canonical form back to the same address", () => {
    fc.assert(
      fc.property(anyAddress, (text) => {
        const formatted = formatAddress(parseAddress(text) ?? []);
        expect(parseAddress(formatted)).toEqual(parseAddress(text));
        expect(parseAddress(text.toUpperCase())).toEqual(parseAddress(text));
        expect(formatted).toBe(formatAddress(parseAddress(formatted) ?? []));
      }),
    );
  });

  it("agrees with Node on every address", () => {
    fc.assert(
      fc.property(ipv6, (text) => {
        const list = new BlockList();
        list.addAddress(text, "ipv6");
        const formatted = formatAddress(parseAddress(text) ?? []);
        expect(list.check(formatted, isIPv6(formatted) ? "ipv6" : "ipv4")).toBe(true);
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
  ])("reads %s as %s", (text, formatted) => {
    expect(formatAddress(parseAddress(text) ?? [])).toBe(formatted);
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

describe("parsePeerAddress", () => {
  it("parses addresses with and without a port", () => {
    fc.assert(
      fc.property(anyAddress, fc.integer({ min: 0, max: 65_535 }), (text, port) => {
        const address = parseAddress(text);
        for (const peer of [text, formatHostPort(text, port), `/${formatHostPort(text, port)}`]) {
          expect(parsePeerAddress(peer)).toEqual(address);
        }
      }),
    );
  });

  it.each([
    ["192.0.2.1:4312", "192.0.2.1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[fe80::1%eth0]:443", "fe80::1"],
    ["[::ffff:192.0.2.1]:443", "192.0.2.1"],
    ["ipv4:192.0.2.1:4312", "192.0.2.1"],
    ["ipv6:[::1]:4312", "::1"],
    ["ipv6:%5B::1%5D:4312", "::1"],
    ["/192.0.2.1:4312", "192.0.2.1"],
    ["/[0:0:0:0:0:0:0:1]:4312", "::1"],
  ])("reads %s as %s", (text, formatted) => {
    expect(formatAddress(parsePeerAddress(text) ?? [])).toBe(formatted);
  });

  it.each([
    "",
    "@",
    "unix:/run/client.sock",
    "192.0.2.1:",
    "192.0.2.1:port",
    "192.0.2.1:123456",
    "192.0.2.256:80",
    "192.0.2.0/24",
    "[::1",
    "::1]",
    "[]:80",
    "localhost:80",
    "192.0.2.1, 192.0.2.2",
  ])("refuses %p", (text) => {
    expect(parsePeerAddress(text)).toBeUndefined();
  });

  it("returns undefined or an address for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."0123456789abdfip6:./%[]5BD") }), (text) => {
        expect([undefined, 4, 16]).toContain(parsePeerAddress(text)?.length);
      }),
    );
  });
});

describe("clientNetworkKey", () => {
  const keyOf = (text: string) => clientNetworkKey(parseAddress(text) ?? []);

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "20010db800010002/64"],
    ["2001:db8:1:2::1", "20010db800010002/64"],
    ["2001:db8:1:3::1", "20010db800010003/64"],
    ["fe80::1%eth0", "fe80000000000000/64"],
  ])("maps %s to %s", (address, key) => {
    expect(keyOf(address)).toBe(key);
  });

  it("is equal exactly for IPv6 addresses of the same /64", () => {
    fc.assert(
      fc.property(ipv6, ipv6, (one, other) => {
        fc.pre(![one, other].some((it) => it.startsWith("0:0:0:0:0:ffff:")));
        const prefixOf = (text: string) => text.split(":").slice(0, 4).join(":");
        expect(keyOf(one) === keyOf(other)).toBe(prefixOf(one) === prefixOf(other));
        const neighbor = `${prefixOf(one)}:${other.split(":").slice(4).join(":")}`;
        fc.pre(!neighbor.startsWith("0:0:0:0:0:ffff:"));
        expect(keyOf(neighbor)).toBe(keyOf(one));
      }),
    );
  });

  it("is the address itself for IPv4", () => {
    fc.assert(fc.property(ipv4, (text) => expect(keyOf(text)).toBe(text)));
  });
});

describe("parseNetwork", () => {
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
        expect(contains(networkOfAddress(start, prefix), address)).toBe(list.check(address, kind));
      }),
      { numRuns: 300 },
    );
  });

  /** The network of an address, which the error for host bits suggests. */
  function networkOfAddress(start: string, prefix: number): string {
    const text = `${start}/${prefix}`;
    const network = parseNetwork(text);
    if (!("problem" in network)) {
      return text;
    }
    const [, suggested = ""] = /use (\S+) for the network/.exec(network.problem) ?? [];
    expect(suggested.endsWith(`/${prefix}`)).toBe(true);
    return suggested;
  }

  it("refuses host bits and names the network and the address", () => {
    for (const [text, suggested, alone] of [
      ["10.1.2.3/8", "10.0.0.0/8", "10.1.2.3"],
      ["10.1.2.3/31", "10.1.2.2/31", "10.1.2.3"],
      ["10.1.2.3/0", "0.0.0.0/0", "10.1.2.3"],
      ["2001:db8::1/32", "2001:db8::/32", "2001:db8::1"],
      ["2001:DB8:ffff::/33", "2001:db8:8000::/33", "2001:db8:ffff::"],
      ["::ffff:10.1.2.3/104", "10.0.0.0/8", "10.1.2.3"],
      ["::ffff:10.1.2.3/64", "::/64", "::ffff:a01:203"],
    ] as const) {
      const hint = `use ${suggested} for the network or ${alone} for one address`;
      expect(parseNetwork(text)).toEqual({ problem: expect.stringContaining(hint) });
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
  ])("reads %s as a network that contains %s and not %s", (network, inside, outside) => {
    expect(contains(network, inside)).toBe(true);
    expect(contains(network, outside)).toBe(false);
  });

  it("names the range of prefixes", () => {
    for (const [text, max] of [
      ["10.0.0.0/33", 32],
      ["10.0.0.0/", 32],
      ["10.0.0.0/08", 32],
      ["10.0.0.0/-1", 32],
      ["10.0.0.0/255.0.0.0", 32],
      ["::/129", 128],
      ["::/1e1", 128],
      ["::/ 8", 128],
    ] as const) {
      expect(parseNetwork(text)).toEqual({ problem: `must have a prefix from /0 to /${max}` });
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

describe("isLoopback", () => {
  it.each(["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])("accepts %s", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each(["localhost.example.com", "127.0.0.1.example.com", "128.0.0.1", "::", "[::1"])(
    "refuses %s",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});
