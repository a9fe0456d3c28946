import { openapi } from "../../gen/openapi.js";
import { type Awaitable, whenThere } from "../awaitable.js";
import { methodNotAllowed, Problem } from "../errors.js";
import { type Door, served } from "./door.js";
import type { Exchange } from "./exchange.js";
import { sendJson, sendProblem } from "./http.js";
import type { Readiness } from "./readiness.js";

type Page = (exchange: Exchange) => Awaitable<void>;

/** Serves what is about the server itself. Takes nothing else. */
export function createPages(readiness: Readiness, keyHeader: string): Door {
  const description = JSON.stringify(describeWith(keyHeader));
  const pages = new Map<string, Page>();

  function show(path: string, page: Page): void {
    pages.set(path, page);
    pages.set(`${path}/`, page);
  }

  show("/healthz", (exchange) => sendJson(exchange, 200, '{"status":"ok"}'));
  show("/readyz", async (exchange) =>
    (await readiness.check())
      ? sendJson(exchange, 200, '{"status":"ready"}')
      : sendProblem(exchange, notReady()),
  );
  show("/openapi.json", (exchange) => sendJson(exchange, 200, description));

  return (exchange) => {
    const page = pages.get(exchange.path);
    if (page && exchange.method !== "GET" && exchange.method !== "HEAD") {
      throw methodNotAllowed(["GET", "HEAD"]);
    }
    return page && whenThere(page(exchange), () => served);
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
