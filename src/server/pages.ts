import { openapi } from "../../gen/openapi.js";
import { methodNotAllowed, Problem } from "../errors.js";
import type { Exchange } from "./exchange.js";
import { sendJson, sendProblem } from "./http.js";
import type { Readiness } from "./readiness.js";

/** Serves what is about the server itself. Takes nothing else. */
export type Pages = (exchange: Exchange) => Promise<void> | undefined;

export function createPages(readiness: Readiness, keyHeader: string): Pages {
  const description = JSON.stringify(describeWith(keyHeader));
  const pages: Readonly<Record<string, (exchange: Exchange) => Promise<void>>> = {
    "/healthz": async (exchange) => sendJson(exchange, 200, '{"status":"ok"}'),
    "/readyz": async (exchange) => {
      if (await readiness.check()) {
        sendJson(exchange, 200, '{"status":"ready"}');
      } else {
        sendProblem(exchange, notReady());
      }
    },
    "/openapi.json": async (exchange) => sendJson(exchange, 200, description),
  };

  return (exchange) => {
    const path = exchange.path.replace(/(?<=.)\/$/, "");
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (page && exchange.method !== "GET" && exchange.method !== "HEAD") {
      throw methodNotAllowed(["GET", "HEAD"]);
    }
    return page?.(exchange);
  };
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
