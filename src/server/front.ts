import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { invalidRequest } from "../errors.js";
import type { Cors } from "./cors.js";
import { dropBody } from "./drop-body.js";
import { type Exchange, type Request, type Response, sendProblem } from "./http.js";

/** Serves a request, or answers `false` where it is for another. */
type Door = (exchange: Exchange) => Promise<boolean>;

interface FrontOptions {
  readonly cors: Cors;
  /** Tried in turn until one takes the request. */
  readonly doors: readonly Door[];
  readonly log: Logger;
  /** Whether connections should end with their next answer. */
  readonly isStopping: () => boolean;
}

/** The first to see a request: names it, and brings it to the door it is for. */
export function createFront({ cors, doors, log, isStopping }: FrontOptions) {
  async function serve(exchange: Exchange): Promise<void> {
    checkHost(exchange.request);
    for (const door of doors) {
      if (await door(exchange)) {
        return;
      }
    }
  }

  return (request: Request, response: Response): void => {
    const exchange = createExchange(request, response);
    const { call } = exchange;
    response.setHeader("x-request-id", call.requestId);
    // Answers may carry keys.
    response.setHeader("cache-control", "no-store");
    response.setHeader("x-content-type-options", "nosniff");
    if (isStopping() && request.httpVersionMajor === 1) {
      response.setHeader("connection", "close");
    }
    if (cors(exchange)) {
      return;
    }
    response.once("close", () => {
      if (!call.logged) {
        log.info({
          request_id: call.requestId,
          path: withoutSecrets(exchange.path),
          status: response.statusCode,
        });
      }
    });
    serve(exchange)
      .catch((reason) => {
        if (!(reason instanceof ConnectError)) {
          log.error({ request_id: call.requestId, err: reason });
        }
        sendProblem(exchange, reason);
      })
      .finally(() => dropBody(request));
  };
}

function createExchange(request: Request, response: Response): Exchange {
  // A proxy may name the whole address.
  const url = (request.url ?? "/").replace(/^https?:\/\/[^/?]*/i, "");
  const mark = url.indexOf("?");
  return {
    request,
    response,
    call: { requestId: requestIdOf(request) },
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? "" : url.slice(mark + 1),
  };
}

/** The caller's own name for the request where it is a plain word, otherwise a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(given) && !given.includes("lk_")
    ? given
    : randomUUID();
}

/** HTTP/1.1 wants every request to name its host. */
function checkHost({ httpVersion, headers }: Request): void {
  if (httpVersion === "1.1" && headers.host === undefined) {
    throw invalidRequest({ field: "host", message: "is missing: send the Host header" });
  }
}

/** A key that was pasted into a path, encoded or not, must not reach the log. */
function withoutSecrets(path: string): string {
  return path.replaceAll(/(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g, "…");
}
