import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Limits } from "../../config/limits.js";
import type { Network } from "../../lib/networks.js";
import type { Exchange } from "../http/exchange.js";
import { createExchangeFactory } from "../http/exchange-factory.js";
import { connectionKey, type SocketWithConnection } from "./connection.js";
import { createConnections } from "./connection-limits.js";
import { createGracefulShutdown, type GracefulShutdown } from "./graceful-shutdown.js";
import { createMalformedRequestHandler, type OnMalformedRequest } from "./malformed-requests.js";
import { createNodeServer, type Tls } from "./node-server.js";
import { closeStaleConnections } from "./stale-connections.js";

interface ListenerOptions {
  readonly onExchange: (exchange: Exchange) => void;
  /** Called when input cannot be parsed as a request. */
  readonly onMalformedRequest?: OnMalformedRequest | undefined;
  readonly limits: Limits;
  /** Exempt from the connection limit per address. */
  readonly trustedProxies: readonly Network[];
  readonly tls?: Tls | undefined;
}

/** One port for HTTP/1.1 and HTTP/2. */
interface Listener extends Pick<GracefulShutdown, "stopAccepting" | "close"> {
  listen(port: number, host: string | undefined): Promise<AddressInfo>;

  readonly connections: number;
}

/** Connections that may wait in the kernel to be accepted. A client that finds the backlog full retries after a second. */
const backlog = 1_024;

export function createListener(options: ListenerOptions): Listener {
  const { onExchange, limits, trustedProxies, tls } = options;
  const connections = createConnections({ limits, trustedProxies });
  const server = createNodeServer(limits, tls);
  const { stopAccepting, close, isClosing } = createGracefulShutdown(server, connections);
  const { onRequest, onSession } = createExchangeFactory({ onExchange, limits, isClosing });

  function onConnection(socket: Socket & SocketWithConnection): void {
    const connection = connections.accept(socket);
    if (connection) {
      socket[connectionKey] = connection;
      socket.on("error", () => {});
    }
  }

  server.on("request", onRequest);
  // An HTTP/2 server with a request listener also emits a request for each stream.
  server.removeAllListeners("stream");
  // Otherwise Node sends 100 Continue before the headers are checked.
  server.on("checkContinue", onRequest);
  // An unknown expectation is ignored.
  server.on("checkExpectation", onRequest);
  server.on("clientError", createMalformedRequestHandler(limits, options.onMalformedRequest));
  server.on("session", onSession);
  server.on("timeout", closeIfInactive);
  server.prependListener("connection", onConnection);
  server.prependListener("secureConnection", linkTlsSocket);
  server.on("secureConnection", readAsStream);
  server.once("close", closeStaleConnections(connections, limits));

  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen({ port, host, backlog }, () => resolve(server.address() as AddressInfo));
      }),

    get connections() {
      return connections.size;
    },

    stopAccepting,
    close,
  };
}

/** Gives a TLS socket the connection of the TCP socket below it. */
function linkTlsSocket(
  socket: TLSSocket & SocketWithConnection & { readonly _parent?: SocketWithConnection },
): void {
  const connection = socket._parent?.[connectionKey];
  if (connection) {
    socket[connectionKey] = connection;
    if (socket.alpnProtocol === "h2") {
      connection.flow.start();
    }
  }
}

/**
 * Node pauses its HTTP/1.1 parser while a client does not read its responses, and TLS records that have already
 * arrived make the paused parser fail. With a listener for data, the records wait in the buffer of the socket.
 */
function readAsStream(socket: TLSSocket): void {
  if (socket.alpnProtocol !== "h2") {
    socket.on("data", () => {});
  }
}

/** Closes connections without open requests, or with unread responses. Streams may be silent. */
function closeIfInactive(socket: Socket & SocketWithConnection): void {
  if (!socket[connectionKey]?.openRequests || socket.writableLength > 0) {
    socket.destroy();
  }
}
