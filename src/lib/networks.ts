import { isIPv4, isIPv6 } from "node:net";

/** The bytes of an address: 4, or 16 of IPv6. An address of IPv4 in IPv6, `::ffff:1.2.3.4`, is one of IPv4. */
export type Address = readonly number[];

/** All addresses that begin with the same bits. */
export interface Network {
  readonly start: Address;
  /** How many bits they have in common. */
  readonly prefix: number;
}

/** Why a text is no network, and what would be one. */
export interface NetworkFault {
  readonly fault: string;
}

/** Reads an address, or answers `undefined` where it is none. The zone of one, as in `fe80::1%eth0`, is left off. */
export function readAddress(text: string): Address | undefined {
  const bytes = bytesIn(text);
  return bytes && isMapped(bytes) ? bytes.slice(mapped.length) : bytes;
}

/** An address in its usual spelling. */
export function showAddress(address: Address): string {
  return isOfIPv4(address) ? address.join(".") : showIPv6(address);
}

/** How many bytes the addresses of IPv6 of one home have in common. */
const homeBytes = 8;

/**
 * The name of all addresses that are counted as one: whoever has an address of
 * IPv6 mostly has all that begin with the same 64 bits, and could come from a
 * new one each time. An address of IPv4 is a home of its own.
 */
export function homeOf(address: Address): string {
  return isOfIPv4(address)
    ? showAddress(address)
    : `${Buffer.from(address.slice(0, homeBytes)).toString("hex")}/${homeBytes * 8}`;
}

/** Reads a network in CIDR notation. An address is the network of itself alone. */
export function readNetwork(text: string): Network | NetworkFault {
  const [address = "", length, ...rest] = text.split("/");
  const given = address.includes("%") || rest.length > 0 ? undefined : bytesIn(address);
  if (!given) {
    return { fault: "must be a network such as 203.0.113.0/24 or 2001:db8::/32, or one address" };
  }
  const most = given.length * 8;
  const prefix = length === undefined ? most : Number(length);
  if (length !== undefined && !(/^(0|[1-9]\d{0,2})$/.test(length) && prefix <= most)) {
    return { fault: `must have a prefix from /0 to /${most}` };
  }
  const network = unmapped({ start: given, prefix });
  const start = cut(network);
  return start.every((byte, at) => byte === network.start[at])
    ? network
    : { fault: beyondPrefix({ ...network, start }, network.start) };
}

/** Whether an address is in one of the networks. */
export function isInOneOf(networks: readonly Network[], address: Address): boolean {
  return networks.some((network) => isIn(network, address));
}

function isIn({ start, prefix }: Network, address: Address): boolean {
  if (start.length !== address.length) {
    return false;
  }
  const whole = prefix >> 3;
  for (let at = 0; at < whole; at++) {
    if (start[at] !== address[at]) {
      return false;
    }
  }
  const difference = (start[whole] ?? 0) ^ (address[whole] ?? 0);
  return difference >> (8 - (prefix & 7)) === 0;
}

/** What every address of IPv4 in IPv6 begins with. */
const mapped: Address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

function isMapped(bytes: Address): boolean {
  return !isOfIPv4(bytes) && mapped.every((byte, at) => byte === bytes[at]);
}

function isOfIPv4(bytes: Address): boolean {
  return bytes.length === 4;
}

/** A network of IPv4 where that is what is meant. */
function unmapped({ start, prefix }: Network): Network {
  const within = prefix - mapped.length * 8;
  return isMapped(start) && within >= 0
    ? { start: start.slice(mapped.length), prefix: within }
    : { start, prefix };
}

/** The start of a network without the bits beyond its prefix. */
function cut({ start, prefix }: Network): Address {
  return start.map((byte, at) => byte & ~(0xff >> Math.max(0, Math.min(8, prefix - at * 8))));
}

function beyondPrefix({ start, prefix }: Network, given: Address): string {
  const meant = `${showAddress(start)}/${prefix}`;
  return `has bits beyond its prefix: write ${meant} for the network, ${showAddress(given)} for the address alone`;
}

function bytesIn(text: string): Address | undefined {
  if (isIPv4(text)) {
    return bytesOfIPv4(text);
  }
  return isIPv6(text) ? bytesOfIPv6(text.split("%", 1)[0] as string) : undefined;
}

function bytesOfIPv4(text: string): number[] {
  return text.split(".").map(Number);
}

function bytesOfIPv6(text: string): number[] {
  const [head = [], tail] = text.split("::").map(bytesOfGroups);
  return tail ? [...head, ...Array(16 - head.length - tail.length).fill(0), ...tail] : head;
}

/** The bytes of groups of four digits, of which the last may be in the form of IPv4. */
function bytesOfGroups(text: string): number[] {
  const groups = text === "" ? [] : text.split(":");
  return groups.flatMap((group) => {
    if (group.includes(".")) {
      return bytesOfIPv4(group);
    }
    const number = Number.parseInt(group, 16);
    return [number >> 8, number & 0xff];
  });
}

/** Shortened as web addresses have it. */
function showIPv6(bytes: Address): string {
  const hex = Buffer.from(bytes).toString("hex");
  return new URL(`http://[${hex.match(/.{4}/g)?.join(":")}]`).hostname.slice(1, -1);
}
