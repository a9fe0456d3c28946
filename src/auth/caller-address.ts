import type { IncomingHttpHeaders } from "node:http";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type Address,
  isInOneOf,
  type Network,
  readAddress,
  showAddress,
} from "../lib/networks.js";
import { callKey } from "./caller.js";

/** Finds out where a call came from. The text is empty where that is not known. */
export type AddressOf = (context: Pick<HandlerContext, "values">) => string;

/** Finds out the same for whoever needs no text, which costs less. */
export type ReadAddressOf = (context: Pick<HandlerContext, "values">) => Address | undefined;

/** How many proxies a call may have come through, so that what it costs to walk back is bounded. */
const mostProxies = 32;

export function createAddressOf(trustedProxies: readonly Network[]): AddressOf {
  const readAddressOf = createReadAddressOf(trustedProxies);
  return (context) => {
    const address = readAddressOf(context);
    return address ? showAddress(address) : "";
  };
}

/**
 * The address of a caller is the one at the other end of the connection. Where
 * that is a proxy that is trusted, it is the one that the proxy says to have
 * been called from, and so on, as long as those who say so are trusted: what
 * stands further left in `X-Forwarded-For` anybody can have written.
 */
export function createReadAddressOf(trustedProxies: readonly Network[]): ReadAddressOf {
  return ({ values }) => {
    const { address, headers } = values.get(callKey).peer;
    const nearest = readAddress(address);
    return nearest && isInOneOf(trustedProxies, nearest)
      ? walkBack(nearest, textOf(headers), trustedProxies)
      : nearest;
  };
}

/** The first address from the right that is not trusted, or the last one that can be read. */
function walkBack(proxy: Address, forwarded: string, trustedProxies: readonly Network[]): Address {
  let client = proxy;
  let end = forwarded.length;
  for (let walked = 0; walked < mostProxies && end >= 0; walked++) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(",", end - 1);
    const address = readEntry(forwarded.slice(comma + 1, end));
    if (!address) {
      return client;
    }
    client = address;
    if (!isInOneOf(trustedProxies, address)) {
      return client;
    }
    end = comma;
  }
  return client;
}

function textOf(headers: IncomingHttpHeaders): string {
  return [headers["x-forwarded-for"] ?? ""].flat().join(",");
}

/** Reads an entry of the header. Some proxies add the port. */
function readEntry(text: string): Address | undefined {
  const entry = text.trim();
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? [];
  return readAddress(bracketed ?? dotted ?? entry);
}
