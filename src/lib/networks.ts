import { isIPv4, isIPv6 } from "node:net";

/**
 * IP addresses and CIDR networks. `net.BlockList` matches addresses, but it
 * neither explains an invalid network nor returns the normalized form.
 */

/** 4 bytes for IPv4, 16 for IPv6. IPv4-mapped IPv6 addresses (`::ffff:1.2.3.4`) are stored as IPv4. */
export type Address = readonly number[];

export interface Network {
  readonly start: Address;
  /** Prefix length in bits. */
  readonly prefix: number;
}

/** Why a text is not a network, phrased to follow the name of the field. */
interface NetworkProblem {
  readonly problem: string;
}

/** Parses an address, or returns `undefined`. Drops the zone of `fe80::1%eth0`. */
export function parseAddress(text: string): Address | undefined {
  const bytes = parseBytes(text);
  return bytes && isMapped(bytes) ? bytes.slice(mappedPrefix.length) : bytes;
}

/** An address with its port as HTTP proxies, Go, Java (`/`) and gRPC (`ipv4:`, `ipv6:`) write it. */
const peerText = /^(?:ipv[46]:|\/)?(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/;

/** Parses an address with or without a port, or returns `undefined`. An IPv6 address with a port is in brackets. */
export function parsePeerAddress(text: string): Address | undefined {
  const address = parseAddress(text);
  if (address) {
    return address;
  }
  // gRPC also encodes the brackets.
  const decoded = text.replace(/%5b/i, "[").replace(/%5d/i, "]");
  const [, bracketed, dotted] = peerText.exec(decoded) ?? [];
  return parseAddress(bracketed ?? dotted ?? "");
}

/** What a text that is not an address must be, phrased to follow the name of the field. */
export const addressRule = "must be an IP address such as 203.0.113.7, with or without a port";

/** The canonical form of an address with or without a port, or `undefined`. */
export function canonicalAddress(text: string): string | undefined {
  const address = parsePeerAddress(text);
  return address && formatAddress(address);
}

/** Whether a text describes a peer without an IP address: nothing, or a Unix socket. */
export function hasNoAddress(text: string): boolean {
  return /^(?:$|@|unix:|unix-abstract:)/.test(text);
}

/** An address in its canonical form. */
export function formatAddress(address: Address): string {
  return isIPv4Bytes(address) ? address.join(".") : formatIPv6(address);
}

/** Whether a host is this machine. IPv6 addresses may be in brackets, as in a URL. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|::1|\[::1\])$/.test(host);
}

/** A host and port as in a URL, with brackets around an IPv6 address. */
export function formatHostPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** Bytes of an IPv6 address that identify one client network (a /64). */
const clientPrefixBytes = 8;

/**
 * The key for limits per address. An IPv6 client usually owns a /64 and
 * could use a new address for each call, so the /64 counts as one client.
 */
export function clientNetworkKey(address: Address): string {
  return isIPv4Bytes(address)
    ? formatAddress(address)
    : `${Buffer.from(address.slice(0, clientPrefixBytes)).toString("hex")}/${clientPrefixBytes * 8}`;
}

/** Parses CIDR notation. A bare address is a network of one address. */
export function parseNetwork(text: string): Network | NetworkProblem {
  const [address = "", length, ...rest] = text.split("/");
  const given = address.includes("%") || rest.length > 0 ? undefined : parseBytes(address);
  if (!given) {
    return { problem: "must be a network such as 203.0.113.0/24 or 2001:db8::/32, or one address" };
  }
  const maxPrefix = given.length * 8;
  const prefix = length === undefined ? maxPrefix : Number(length);
  if (length !== undefined && !(/^(0|[1-9]\d{0,2})$/.test(length) && prefix <= maxPrefix)) {
    return { problem: `must have a prefix from /0 to /${maxPrefix}` };
  }
  const network = unmapNetwork({ start: given, prefix });
  const start = maskHostBits(network);
  return start.every((byte, index) => byte === network.start[index])
    ? network
    : { problem: describeHostBits({ ...network, start }, network.start) };
}

export function isInAnyNetwork(networks: readonly Network[], address: Address): boolean {
  return networks.some((network) => isIn(network, address));
}

/** Whether every address of a network is in one of these networks. */
export function coversNetwork(networks: readonly Network[], network: Network): boolean {
  if (networks.some((each) => each.prefix <= network.prefix && isIn(each, network.start))) {
    return true;
  }
  // Several smaller ones may cover it together.
  const inside = networks.filter((each) => isIn(network, each.start));
  return inside.length > 1 && halvesOf(network).every((half) => coversNetwork(inside, half));
}

function halvesOf({ start, prefix }: Network): Network[] {
  const upper = start.map((byte, index) =>
    index === prefix >> 3 ? byte | (0x80 >> (prefix & 7)) : byte,
  );
  return [start, upper].map((half) => ({ start: half, prefix: prefix + 1 }));
}

function isIn({ start, prefix }: Network, address: Address): boolean {
  if (start.length !== address.length) {
    return false;
  }
  const fullBytes = prefix >> 3;
  for (let index = 0; index < fullBytes; index++) {
    if (start[index] !== address[index]) {
      return false;
    }
  }
  const difference = (start[fullBytes] ?? 0) ^ (address[fullBytes] ?? 0);
  return difference >> (8 - (prefix & 7)) === 0;
}

/** The prefix of IPv4-mapped IPv6 addresses, `::ffff:0:0/96`. */
const mappedPrefix: Address = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

function isMapped(bytes: Address): boolean {
  return !isIPv4Bytes(bytes) && mappedPrefix.every((byte, index) => byte === bytes[index]);
}

function isIPv4Bytes(bytes: Address): boolean {
  return bytes.length === 4;
}

/** Converts an IPv4-mapped network to IPv4. */
function unmapNetwork({ start, prefix }: Network): Network {
  const prefixOfIPv4 = prefix - mappedPrefix.length * 8;
  return isMapped(start) && prefixOfIPv4 >= 0
    ? { start: start.slice(mappedPrefix.length), prefix: prefixOfIPv4 }
    : { start, prefix };
}

/** The start of a network with its host bits cleared. */
function maskHostBits({ start, prefix }: Network): Address {
  return start.map((byte, index) => byte & ~(0xff >> Math.max(0, Math.min(8, prefix - index * 8))));
}

function describeHostBits({ start, prefix }: Network, given: Address): string {
  const network = `${formatAddress(start)}/${prefix}`;
  return `has bits set after its prefix: use ${network} for the network or ${formatAddress(given)} for one address`;
}

function parseBytes(text: string): Address | undefined {
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

/** The bytes of colon-separated groups. The last group may be a dotted IPv4 address. */
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

/** `URL` applies the canonical shortening. */
function formatIPv6(bytes: Address): string {
  const hex = Buffer.from(bytes).toString("hex");
  return new URL(`http://[${hex.match(/.{4}/g)?.join(":")}]`).hostname.slice(1, -1);
}
