import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { Call } from "../call.js";
import { accessOf } from "../contract/methods.js";
import { memoize } from "../lib/cache.js";
import { isInAnyNetwork, type Network, parseAddress } from "../lib/networks.js";
import { hour } from "../lib/time-units.js";

/**
 * Notices calls that a proxy forwards which is not trusted: all its clients then share its
 * address. A client can send the headers too, so this is only a hint.
 */
export interface UntrustedForwarding {
  check(call: Pick<Call, "method" | "peer">): void;
  /** Whether such a call arrived in the last hour. */
  isRecent(): boolean;
}

/** Any client can be such a peer, so only so many are logged. */
const maxLoggedPeers = 10;

interface UntrustedForwardingOptions {
  readonly trustedProxies: readonly Network[];
  readonly log: Pick<Logger, "warn">;
  /** Called for each such call. */
  readonly onCall?: (() => void) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

export function createUntrustedForwarding({
  trustedProxies,
  log,
  onCall,
  now = () => performance.now(),
}: UntrustedForwardingOptions): UntrustedForwarding {
  let lastSeen: number | undefined;
  const loggedPeers = new Set<string>();
  /** The headers of a gateway describe the request of its client. */
  const keyHeaderOf = memoize((method: DescMethod) => accessOf(method).keyHeader);

  return {
    check({ method, peer: { address, headers } }) {
      if (headers["x-forwarded-for"] === undefined && headers.forwarded === undefined) {
        return;
      }
      const peer = parseAddress(address);
      if (!peer || isInAnyNetwork(trustedProxies, peer) || keyHeaderOf(method) !== "") {
        return;
      }
      if (loggedPeers.size < maxLoggedPeers && !loggedPeers.has(address)) {
        loggedPeers.add(address);
        log.warn(
          { peer: address },
          "forwarding headers from a peer that is not in TRUSTED_PROXIES: if it is your proxy, add it, or all its clients share one address",
        );
      }
      lastSeen = now();
      onCall?.();
    },

    isRecent: () => lastSeen !== undefined && now() - lastSeen < hour,
  };
}
