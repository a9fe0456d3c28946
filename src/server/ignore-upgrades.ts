import type { IncomingMessage } from "node:http";
import type { Server, Socket } from "node:net";
import { type Connected, connectionKey } from "./connection.js";

/**
 * Serves requests with an `Upgrade` header as if they had none. Node ignores the
 * header by itself, but loses what was sent behind such a request. So the socket
 * starts again with the same bytes, without the header, once the requests before
 * are answered. `serveSocket` are the listeners that give a socket to HTTP/1.1.
 */
export function ignoreUpgrades(
  server: Server,
  serveSocket: readonly ((socket: Socket) => void)[],
  headerCount: number,
): void {
  server.on("upgrade", (request: IncomingMessage, socket: Socket & Connected, head: Buffer) => {
    const start = () => {
      if (!socket.destroyed) {
        socket.unshift(Buffer.concat([headersOf(request, headerCount), head]));
        for (const serve of serveSocket) {
          serve.call(server, socket);
        }
      }
    };
    const connection = socket[connectionKey];
    if (connection && connection.requests > 0) {
      connection.onIdle = start;
    } else {
      start();
    }
  });
}

/** The request line and the headers of a request, without those that ask for an upgrade. */
function headersOf(request: IncomingMessage, most: number): Buffer {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.toLowerCase() !== "upgrade") {
      lines.push(`${name}: ${rawHeaders[at + 1]}`);
    }
  }
  if (rawHeaders.length / 2 > most) {
    // Node may have left some off, and the length of the body with them.
    lines.push("connection: close");
  }
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
}
