import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Limits } from "../../config/limits.js";
import type { Network } from "../../lib/networks.js";
import type { Exchange } from "../http/exchange.js";
import { createExchanges } from "../http/exchanges.js";
import { type Connected, connectionKey } from "./connection.js";
import { createConnections } from "./connections.js";
import { createGentleClose, type GentleClose } from "./graceful-shutdown.js";
import { createRefuseMalformed, type OnRefused } from "./malformed-requests.js";
import { createNodeServer, type Tls } from "./node-server.js";
import { endOverdue } from "./stale-connections.js";

interface ListenerOptions {
  readonly onExchange: (exchange: Exchange) => void;
  /** Called with what cannot be read as a request. */
  readonly onRefused?: OnRefused | undefined;
  readonly limits: Limits;
  /** Those whose connections are limited only together with all others. */
  readonly trustedProxies: readonly Network[];
  readonly tls?: Tls | undefined;
}

/** One port for HTTP/1.1 and HTTP/2. */
export interface Listener extends Pick<GentleClose, "refuse" | "close"> {
  listen(port: number, host: string | undefined): Promise<AddressInfo>;

  /** How many connections are open. */
  readonly connections: number;
}

/** How many connections may wait to be taken in: who finds no place waits a second to try again. */
const backlog = 1_024;

export function createListener(options: ListenerOptions): Listener {
  const { onExchange, limits, trustedProxies, tls } = options;
  const connections = createConnections({ limits, trustedProxies });
  const server = createNodeServer(limits, tls);
  const { refuse, close, isClosing } = createGentleClose(server, connections);
  const { onRequest, onSession } = createExchanges({ onExchange, limits, isClosing });

  function take(socket: Socket & Connected): void {
    const connection = connections.admit(socket);
    if (connection) {
      socket[connectionKey] = connection;
      socket.on("error", () => {});
    }
  }

  server.on("request", onRequest);
  // A server of HTTP/2 that is listened to for requests makes one of each stream, by a listener of its own.
  server.removeAllListeners("stream");
  // Without this Node asks for the body before anyone has looked at the headers.
  server.on("checkContinue", onRequest);
  // An expectation that nobody knows is no reason to refuse a request.
  server.on("checkExpectation", onRequest);
  server.on("clientError", createRefuseMalformed(limits, options.onRefused));
  server.on("session", onSession);
  server.on("timeout", endSilent);
  server.prependListener("connection", take);
  server.prependListener("secureConnection", carryOver);
  server.on("secureConnection", readAsStream);
  server.once("close", endOverdue(connections, limits));

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host, backlog }, () => resolve(server.address() as AddressInfo));
      }),

    get connections() {
      return connections.size;
    },

    refuse,
    close,
  };
}

/** What is encrypted comes over a socket of its own. */
function carryOver(socket: TLSSocket & Connected & { readonly _parent?: Connected }): void {
  const connection = socket._parent?.[connectionKey];
  if (connection) {
    socket[connectionKey] = connection;
    if (socket.alpnProtocol === "h2") {
      connection.flow.begin();
    }
  }
}

/**
 * Node pauses its HTTP/1.1 parser while a client does not read its answers. Over
 * TLS, records that have already arrived still go to the paused parser, which
 * fails, and the connection is lost. With a listener for data, Node reads the
 * socket as a stream, and they wait in its buffer.
 */
function readAsStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== "h2") {
    socket.on("data", () => {});
  }
}

/** Ends what nobody asks anything over, or whose answers nobody reads; a stream may be quiet. */
function endSilent(socket: Socket & Connected): void {
  if (!socket[connectionKey]?.requests || socket.writableLength > 0) {
    socket.destroy();
  }
}
