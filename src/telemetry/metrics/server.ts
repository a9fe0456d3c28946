import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { prometheusContentType } from "prom-client";
import type { MetricsSettings } from "../../config/settings.js";
import { explainListenError } from "../../lib/listen-error.js";
import { formatHostPort } from "../../lib/networks.js";

interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

const path = "/metrics";

/** Serves metrics on a separate port, if the settings name one. */
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
    const isScrape = url.split("?")[0] === path && (method === "GET" || method === "HEAD");
    respond(response, isScrape ? scrape : undefined);
  });
  await new Promise<void>((resolve, reject) => {
    const names = { host: "METRICS_HOST", port: "METRICS_PORT" };
    server.once("error", (error) => reject(explainListenError(error, { host, port, names })));
    server.listen(port, host, resolve);
  });
  const { address, port: boundPort } = server.address() as AddressInfo;
  return {
    url: `http://${formatHostPort(address, boundPort)}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(
  response: ServerResponse,
  scrape: (() => Promise<Buffer | string>) | undefined,
): Promise<void> {
  if (!scrape) {
    response.writeHead(404, { "content-type": "text/plain" });
    response.end(`Not found. Metrics are at ${path}.\n`);
    return;
  }
  try {
    const text = await scrape();
    response.writeHead(200, { "content-type": prometheusContentType });
    response.end(text);
  } catch {
    response.writeHead(503, { "content-type": "text/plain" });
    response.end("Metrics are unavailable.\n");
  }
}

/** The minimum time between two scrapes in milliseconds. */
const minInterval = 100;

/**
 * Limits the load of unauthenticated scrapes: one at a time, with a pause after
 * each. Requests that arrive during a scrape share the next one, so a result is
 * never older than its request.
 */
export function shareScrapes<T>(scrape: () => Promise<T>): () => Promise<T> {
  let previous: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;

  async function scrapeNext(): Promise<T> {
    await previous;
    next = undefined;
    const scraped = scrape();
    previous = scraped
      .catch(() => {})
      .then(() => new Promise((resolve) => setTimeout(resolve, minInterval).unref()));
    return scraped;
  }

  return () => {
    next ??= scrapeNext();
    return next;
  };
}
