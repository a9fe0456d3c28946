import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { MetricsSettings } from "../../config/settings.js";
import { metricsType } from "./families.js";

/** Tells metrics at a port of their own. */
interface MetricsServer {
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

/** How long after one scrape the next begins at the earliest, in milliseconds. */
const pause = 100;

/**
 * Anyone may ask for metrics, so they are told one scrape at a time and with a
 * pause after each: nobody can keep the process busy by asking. What is told
 * is never older than the question: those who ask meanwhile share the next.
 */
export function shareScrapes<T>(scrape: () => Promise<T>): () => Promise<T> {
  let before: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;

  async function scrapeNext(): Promise<T> {
    await before;
    next = undefined;
    const scraped = scrape();
    before = scraped
      .catch(() => {})
      .then(() => new Promise((resolve) => setTimeout(resolve, pause).unref()));
    return scraped;
  }

  return () => {
    next ??= scrapeNext();
    return next;
  };
}

/** Where to listen, and the names of the settings that say so. */
interface Place {
  readonly host: string | undefined;
  readonly port: number;
  readonly names: { readonly host: string; readonly port: string };
}

/** Why nothing can be served at a place, and what to do. */
export function explainListenError(error: NodeJS.ErrnoException, place: Place): Error {
  const { host, port, names } = place;
  const where = `${host ?? "*"}:${port}`;
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `${where} is taken by another program: stop it or set ${names.port} to another port`,
      );
    case "EACCES":
      return new Error(`${where} may not be used by this user: set ${names.port} to 1024 or above`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(
        `${where} is not an address of this machine: set ${names.host} to one that is`,
      );
    default:
      return error;
  }
}
