import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy that speaks HTTP/1.1 and nothing else. */
interface Http1Proxy {
  readonly url: string;
  /** Breaks the connections that there are. New ones work. */
  breakConnections(): void;
  close(): Promise<void>;
}

/** What a request waits for before it is passed on. */
type Hold = (path: string) => Promise<void> | undefined;

export async function startHttp1Proxy(
  port: number,
  hold: Hold = () => undefined,
): Promise<Http1Proxy> {
  async function pass(near: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method, headers, url: path = "/" } = near;
    await hold(path);
    const far = request({ host: "127.0.0.1", port, method, path, headers }, (answered) => {
      answer.writeHead(answered.statusCode ?? 502, answered.headers);
      answered.on("error", () => answer.destroy());
      answered.pipe(answer);
    });
    far.on("error", () => answer.destroy());
    answer.on("close", () => far.destroy());
    near.pipe(far);
  }

  const server = createServer(pass).listen(0, "127.0.0.1");
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
