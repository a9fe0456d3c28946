import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy that only supports HTTP/1.1. */
interface Http1Proxy {
  readonly url: string;
  /** Closes the open connections. New ones work. */
  breakConnections(): void;
  close(): Promise<void>;
}

/** Delays a request until its promise resolves. */
type Hold = (path: string) => Promise<void> | undefined;

export async function startHttp1Proxy(
  port: number,
  hold: Hold = () => undefined,
): Promise<Http1Proxy> {
  async function forward(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, headers, url: path = "/" } = incoming;
    await hold(path);
    const upstream = request(
      { host: "127.0.0.1", port, method, path, headers },
      (upstreamResponse) => {
        response.writeHead(upstreamResponse.statusCode ?? 502, upstreamResponse.headers);
        upstreamResponse.on("error", () => response.destroy());
        upstreamResponse.pipe(response);
      },
    );
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  }

  const server = createServer(forward).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    breakConnections: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
