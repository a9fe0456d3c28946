import { openapi } from "../../../gen/openapi.js";
import { Problem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import { metricsType } from "../../telemetry/metrics/families.js";
import type { Exchange } from "../http/exchange.js";
import { type Door, served } from "../http/exchange.js";
import { checkIsRead, sendJson, sendProblem } from "../http/responses.js";
import type { Readiness } from "./health.js";
import { webPageAt } from "./web-pages.js";

interface PagesOptions {
  readonly readiness: Readiness;
  readonly keyHeader: string;
  /** Tells the metrics, where they are shown here: as bytes, too. */
  readonly scrape?: (() => Promise<Buffer>) | undefined;
}

/** All that is about the server itself. */
export const pageNames = ["healthz", "readyz", "openapi.json", "metrics"] as const;
type PageName = (typeof pageNames)[number];

type Page = (exchange: Exchange) => MaybePromise<void>;

/** Serves what is about the server itself. Takes nothing else. */
export function createPages({ readiness, keyHeader, scrape }: PagesOptions): Door {
  // As bytes, which all answers share, however many wait to be read.
  const description = Buffer.from(JSON.stringify(describeWith(keyHeader)));
  const pages = new Map<string, Page>();

  function show(name: PageName, page: Page): void {
    for (const path of pathsOf(name)) {
      pages.set(path, page);
    }
  }

  show("healthz", (exchange) => sendJson(exchange, 200, '{"status":"ok"}'));
  show("readyz", async (exchange) =>
    (await readiness.check())
      ? sendJson(exchange, 200, '{"status":"ready"}')
      : sendProblem(exchange, notReady()),
  );
  show("openapi.json", (exchange) => sendJson(exchange, 200, description));
  if (scrape) {
    show("metrics", async (exchange) =>
      exchange.send(200, ["content-type", metricsType], await scrape()),
    );
  }

  return (exchange) => {
    const page = pages.get(exchange.path);
    if (page) {
      checkIsRead(exchange);
      return mapMaybePromise(page(exchange), () => served);
    }
    return undefined;
  };
}

const namesByPath: ReadonlyMap<string, string> = new Map(
  pageNames.flatMap((name) => pathsOf(name).map((path) => [path, name])),
);

/** What a request that is no call asks for, in one of a few words, however it is put. */
export function pageAt(path: string): string {
  return namesByPath.get(path) ?? webPageAt(path) ?? "other";
}

function pathsOf(name: PageName): string[] {
  return [`/${name}`, `/${name}/`];
}

function notReady(): Problem {
  return new Problem("store_unavailable", "The server cannot reach its store, or is stopping.", {
    retryAfter: 1_000,
  });
}

/** The description of the API, with the header that this server reads keys from. */
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
