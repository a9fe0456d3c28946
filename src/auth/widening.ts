import type { Restrictions } from "../contract/grants.js";
import { coversNetwork, type Network, parseNetwork } from "../lib/networks.js";
import { coversOrigin } from "../lib/web-origin.js";

/** Where and until when the keys of an application can be used. */
interface Use extends Restrictions {
  readonly disabled?: boolean;
  readonly expiresAt?: number | undefined;
}

/** Whether a change lets the keys of an application be used again, for longer or from more places. */
export function isWidened(before: Use, after: Use): boolean {
  const never = Number.POSITIVE_INFINITY;
  return (
    (before.disabled === true && !after.disabled) ||
    (after.expiresAt ?? never) > (before.expiresAt ?? never) ||
    !areNetworksWithin(after.allowedCidrs, before.allowedCidrs) ||
    !areOriginsWithin(after.allowedOrigins, before.allowedOrigins)
  );
}

/** Whether some networks allow no address that others do not. No networks allow all addresses. */
export function areNetworksWithin(inner: readonly string[], outer: readonly string[]): boolean {
  if (outer.length === 0) {
    return true;
  }
  const networks = outer.flatMap((text) => toNetwork(text) ?? []);
  return (
    inner.length > 0 &&
    inner.map(toNetwork).every((network) => network && coversNetwork(networks, network))
  );
}

function toNetwork(text: string): Network | undefined {
  const network = parseNetwork(text);
  return "problem" in network ? undefined : network;
}

function areOriginsWithin(inner: readonly string[], outer: readonly string[]): boolean {
  return (
    outer.length === 0 || (inner.length > 0 && inner.every((origin) => coversOrigin(outer, origin)))
  );
}
