import { prometheusContentType } from "prom-client";
import { AuthZenService } from "../../../gen/latchkey/v1/authzen_service_pb.js";
import { openapi } from "../../../gen/openapi.js";
import { version } from "../../config/settings.js";
import { routeOf } from "../../contract/methods.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { type Exchange, type RequestHandler, unlogged } from "../http/exchange.js";
import { accepts, type HeaderList } from "../http/headers.js";
import { requireGetOrHead, sendJson, sendProblem } from "../http/responses.js";
import type { Readiness } from "./health.js";
import { webPageAt } from "./web-pages.js";

interface EndpointOptions {
  readonly readiness: Readiness;
  readonly keyHeader: string;
  /** Whether the service has the console. */
  readonly hasConsole: boolean;
  /** The URL of the service for its clients, without a trailing slash. */
  readonly publicUrl?: string | undefined;
  /** Renders the metrics, if this port serves them. */
  readonly scrape?: (() => Promise<Buffer>) | undefined;
}

export const systemEndpointNames = [
  "healthz",
  "readyz",
  "openapi.json",
  "metrics",
  ".well-known/authzen-configuration",
] as const;
type EndpointName = (typeof systemEndpointNames)[number];

type Endpoint = (exchange: Exchange) => MaybePromise<void>;

export function createSystemEndpoints({
  readiness,
  keyHeader,
  hasConsole,
  publicUrl,
  scrape,
}: EndpointOptions): RequestHandler {
  // All responses share this buffer.
  const document = Buffer.from(JSON.stringify(describeInstance(keyHeader, publicUrl)));
  const endpoints = new Map<string, Endpoint>();

  function add(name: EndpointName, endpoint: Endpoint): void {
    for (const path of pathsOf(name)) {
      endpoints.set(path, endpoint);
    }
  }

  const service = JSON.stringify({
    name: "latchkey",
    version,
    ...(hasConsole && { console: "/console" }),
    docs: "/docs",
    openapi: "/openapi.json",
  });
  endpoints.set(rootPath, (exchange) =>
    accepts(exchange.headers.accept, "text/html")
      ? exchange.send(302, [...varyByAccept, "location", hasConsole ? "/console" : "/docs"])
      : exchange.send(200, [...varyByAccept, "content-type", "application/json"], service),
  );
  add("healthz", (exchange) => sendJson(exchange, 200, '{"status":"ok"}'));
  add("readyz", async (exchange) =>
    (await readiness.check())
      ? sendJson(exchange, 200, '{"status":"ready"}')
      : sendProblem(exchange, notReady()),
  );
  add("openapi.json", (exchange) => sendJson(exchange, 200, document));
  const metadata = publicUrl === undefined ? undefined : createAuthZenMetadata(publicUrl);
  add(".well-known/authzen-configuration", (exchange) =>
    metadata === undefined
      ? sendProblem(exchange, noPublicUrl())
      : sendJson(exchange, 200, metadata),
  );
  if (scrape) {
    add("metrics", async (exchange) =>
      exchange.send(200, ["content-type", prometheusContentType], await scrape()),
    );
  }

  return (exchange) => {
    const endpoint = endpoints.get(exchange.path);
    if (endpoint) {
      requireGetOrHead(exchange);
      return mapMaybePromise(endpoint(exchange), () => unlogged);
    }
    return undefined;
  };
}

/** The metadata of the AuthZEN API, which clients discover. Searches that are not listed are not supported. */
export function createAuthZenMetadata(publicUrl: string): string {
  const { evaluate, batchEvaluate, searchSubjects, searchActions } = AuthZenService.method;
  return JSON.stringify({
    policy_decision_point: publicUrl,
    access_evaluation_endpoint: `${publicUrl}${routeOf(evaluate)}`,
    access_evaluations_endpoint: `${publicUrl}${routeOf(batchEvaluate)}`,
    search_subject_endpoint: `${publicUrl}${routeOf(searchSubjects)}`,
    search_action_endpoint: `${publicUrl}${routeOf(searchActions)}`,
  });
}

/** Browsers get the console or the documentation here, and programs the paths of this service. */
const rootPath = "/";
const varyByAccept: HeaderList = ["vary", "accept"];

const namesByPath: ReadonlyMap<string, string> = new Map([
  [rootPath, "root"],
  ...systemEndpointNames.flatMap((name) => pathsOf(name).map((path) => [path, name] as const)),
]);

/** The endpoint of a request that is not a call, as a label of bounded cardinality. */
export function endpointLabel(path: string): string {
  return namesByPath.get(path) ?? webPageAt(path) ?? "other";
}

function pathsOf(name: EndpointName): string[] {
  return [`/${name}`, `/${name}/`];
}

function notReady(): Problem {
  return new Problem(
    "store_unavailable",
    "The server cannot reach its store, or is shutting down. Retry, or use another instance.",
    {
      retryAfter: 1_000,
    },
  );
}

/** The URLs in the metadata are not derived from the Host header, which anyone can set. */
function noPublicUrl(): Problem {
  return new Problem(
    "path_not_found",
    "Not found. The operator must set PUBLIC_URL to the URL of the service to publish its AuthZEN metadata.",
  );
}

/** The OpenAPI document with the configured key header and URL. Relative URLs are those of the document. */
function describeInstance(keyHeader: string, publicUrl = "/"): unknown {
  const { components } = openapi;
  const apiKey = { ...components.securitySchemes.apiKey, name: keyHeader };
  const securitySchemes = { ...components.securitySchemes, apiKey };
  return {
    ...openapi,
    servers: [{ url: publicUrl }],
    components: { ...components, securitySchemes },
  };
}
