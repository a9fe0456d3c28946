import type { IncomingHttpHeaders } from "node:http";
import type { Peer } from "../call.js";
import {
  type Address,
  formatAddress,
  isInAnyNetwork,
  type Network,
  parseAddress,
  parsePeerAddress,
} from "../lib/networks.js";

/** Returns the client address of a call, or the empty string if it is unknown. */
export type AddressOf = (peer: Peer) => string;

/** Returns the parsed client address, which costs less than its text. */
export type ReadAddressOf = (peer: Peer) => Address | undefined;

/** Limits the cost of reading `X-Forwarded-For`. */
const maxProxies = 32;

export function createAddressOf(trustedProxies: readonly Network[]): AddressOf {
  const readAddressOf = createReadAddressOf(trustedProxies);
  return (peer) => {
    const address = readAddressOf(peer);
    return address ? formatAddress(address) : "";
  };
}

/** Returns the address of a gateway's client, or the empty string if the gateway does not send it. */
export type ForwardedAddressOf = (gateway: Peer) => string;

/** A gateway is trusted to send the address of its client in `X-Forwarded-For`. */
export function createForwardedAddressOf(trustedProxies: readonly Network[]): ForwardedAddressOf {
  return ({ address, headers }) => {
    const gateway = parseAddress(address);
    const client = gateway && findClient(gateway, forwardedFor(headers), trustedProxies);
    return client && client !== gateway ? formatAddress(client) : "";
  };
}

/**
 * The client address is the peer of the connection. If the peer is a trusted
 * proxy, it is the rightmost untrusted address in `X-Forwarded-For`: clients
 * can forge the entries further left.
 */
export function createReadAddressOf(trustedProxies: readonly Network[]): ReadAddressOf {
  return ({ address, headers }) => {
    const nearest = parsePeerAddress(address);
    return nearest && isInAnyNetwork(trustedProxies, nearest)
      ? findClient(nearest, forwardedFor(headers), trustedProxies)
      : nearest;
  };
}

/** The first untrusted address from the right, or the last one that can be parsed. */
function findClient(
  proxy: Address,
  forwarded: string,
  trustedProxies: readonly Network[],
): Address {
  let client = proxy;
  let end = forwarded.length;
  for (let hops = 0; hops < maxProxies && end >= 0; hops++) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(",", end - 1);
    // Some proxies add the port.
    const address = parsePeerAddress(forwarded.slice(comma + 1, end).trim());
    if (!address) {
      return client;
    }
    client = address;
    if (!isInAnyNetwork(trustedProxies, address)) {
      return client;
    }
    end = comma;
  }
  return client;
}

function forwardedFor(headers: IncomingHttpHeaders): string {
  return [headers["x-forwarded-for"] ?? ""].flat().join(",");
}
