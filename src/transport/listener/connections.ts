import type { Socket } from "node:net";
import type { Limits } from "../../config/limits.js";
import {
  clientNetworkKey,
  isInAnyNetwork,
  type Network,
  parseAddress,
} from "../../lib/networks.js";

interface ConnectionsOptions {
  readonly limits: Pick<Limits, "connections" | "connectionsPerAddress">;
  /** Exempt from the limit per address: many callers connect through them. */
  readonly trustedProxies: readonly Network[];
}

/** The open connections. */
export interface Connections extends Iterable<Socket> {
  /** Counts a connection until it closes. Closes it at once if a limit is reached. */
  accept(socket: Socket): void;

  readonly size: number;
}

/** Enforces the limits for all connections and per address. */
export function createConnections({ limits, trustedProxies }: ConnectionsOptions): Connections {
  const open = new Set<Socket>();
  const countByNetwork = new Map<string, number>();

  /** The network that a connection is counted by, or `undefined` for a trusted proxy. */
  function networkOf({ remoteAddress = "" }: Socket): string | undefined {
    const address = parseAddress(remoteAddress);
    if (!address) {
      // The client has disconnected already.
      return "unknown";
    }
    return isInAnyNetwork(trustedProxies, address) ? undefined : clientNetworkKey(address);
  }

  function count(network: string | undefined, change: number): void {
    if (network === undefined) {
      return;
    }
    const connections = (countByNetwork.get(network) ?? 0) + change;
    if (connections > 0) {
      countByNetwork.set(network, connections);
    } else {
      countByNetwork.delete(network);
    }
  }

  function isFull(network: string | undefined): boolean {
    return (
      open.size >= limits.connections ||
      (network !== undefined && (countByNetwork.get(network) ?? 0) >= limits.connectionsPerAddress)
    );
  }

  return {
    accept(socket) {
      const network = networkOf(socket);
      if (isFull(network)) {
        socket.destroy();
        return;
      }
      open.add(socket);
      count(network, 1);
      socket.once("close", () => {
        open.delete(socket);
        count(network, -1);
      });
    },

    get size() {
      return open.size;
    },

    [Symbol.iterator]: () => open.values(),
  };
}
