import { openapi } from "../../../gen/openapi.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { metricsContentType } from "../../telemetry/metrics/families.js";
import { type Exchange, handled, type RequestHandler } from "../http/exchange.js";
import { requireGetOrHead, sendJson, sendProblem } from "../http/responses.js";
import type { Readiness } from "./health.js";
import { webPageAt } from "./web-pages.js";

interface PagesOptions {
  readonly readiness: Readiness;
  readonly keyHeader: string;
  /** Renders the metrics, if this port serves them. */
  readonly scrape?: (() => Promise<Buffer>) | undefined;
}

/** The system endpoints. */
export const systemEndpointNames = ["healthz", "readyz", "openapi.json", "metrics"] as const;
type PageName = (typeof systemEndpointNames)[number];

type Page = (exchange: Exchange) => MaybePromise<void>;

/** Serves the system endpoints. */
export function createSystemEndpoints({
  readiness,
  keyHeader,
  scrape,
}: PagesOptions): RequestHandler {
  // All responses share this buffer.
  const description = Buffer.from(JSON.stringify(describeWith(keyHeader)));
  const pages = new Map<string, Page>();

  function add(name: PageName, page: Page): void {
    for (const path of pathsOf(name)) {
      pages.set(path, page);
    }
  }

  add("healthz", (exchange) => sendJson(exchange, 200, '{"status":"ok"}'));
  add("readyz", async (exchange) =>
    (await readiness.check())
      ? sendJson(exchange, 200, '{"status":"ready"}')
      : sendProblem(exchange, notReady()),
  );
  add("openapi.json", (exchange) => sendJson(exchange, 200, description));
  if (scrape) {
    add("metrics", async (exchange) =>
      exchange.send(200, ["content-type", metricsContentType], await scrape()),
    );
  }

  return (exchange) => {
    const page = pages.get(exchange.path);
    if (page) {
      requireGetOrHead(exchange);
      return mapMaybePromise(page(exchange), () => handled);
    }
    return undefined;
  };
}

const namesByPath: ReadonlyMap<string, string> = new Map(
  systemEndpointNames.flatMap((name) => pathsOf(name).map((path) => [path, name])),
);

/** The endpoint of a request that is not a call, as a label of bounded cardinality. */
export function endpointLabel(path: string): string {
  return namesByPath.get(path) ?? webPageAt(path) ?? "other";
}

function pathsOf(name: PageName): string[] {
  return [`/${name}`, `/${name}/`];
}

function notReady(): Problem {
  return new Problem(
    "store_unavailable",
    "The server cannot reach its store, or is shutting down.",
    {
      retryAfter: 1_000,
    },
  );
}

/** The OpenAPI document with the configured key header. */
function describeWith(keyHeader: string): unknown {
  const { components } = openapi;
  const securitySchemes = Object.fromEntries(
    Object.entries(components.securitySchemes).map(([name, scheme]) => [
      name,
      { ...scheme, name: keyHeader },
    ]),
  );
  return { ...openapi, components: { ...components, securitySchemes } };
}
