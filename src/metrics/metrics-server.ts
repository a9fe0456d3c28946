import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { MetricsSettings } from "../config.js";
import { explainListenError } from "../listen-error.js";
import { metricsType } from "./exposition.js";

/** Tells metrics at a port of their own. */
export interface MetricsServer {
  /** Where they are. */
  readonly url: string;
  close(): Promise<void>;
}

const path = "/metrics";

/** Starts to tell metrics where the settings want them to have a port of their own. */
export async function startMetricsServer(
  settings: MetricsSettings | undefined,
  scrape: () => Promise<Buffer | string>,
): Promise<MetricsServer | undefined> {
  if (settings?.port === undefined) {
    return undefined;
  }
  const { port, host } = settings;
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 10_000 });
  server.on("request", ({ method, url = "" }, response) => {
    const isAsked = url.split("?")[0] === path && (method === "GET" || method === "HEAD");
    answer(response, isAsked ? scrape : undefined);
  });
  await new Promise<void>((resolve, reject) => {
    const names = { host: "METRICS_HOST", port: "METRICS_PORT" };
    server.once("error", (error) => reject(explainListenError(error, { host, port, names })));
    server.listen(port, host, resolve);
  });
  const { address, family, port: given } = server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${given}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  response: ServerResponse,
  scrape: (() => Promise<Buffer | string>) | undefined,
): Promise<void> {
  if (!scrape) {
    response.writeHead(404, { "content-type": "text/plain" });
    response.end(`There is nothing here but ${path}.\n`);
    return;
  }
  try {
    const text = await scrape();
    response.writeHead(200, { "content-type": metricsType });
    response.end(text);
  } catch {
    response.writeHead(503, { "content-type": "text/plain" });
    response.end("The metrics cannot be told now.\n");
  }
}
