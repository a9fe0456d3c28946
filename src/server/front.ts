import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { invalidRequest } from "../errors.js";
import type { Cors } from "./cors.js";
import type { Exchange } from "./exchange.js";
import { sendProblem } from "./http.js";

/** Serves a request, or answers `undefined` where it is for another. */
type Door = (exchange: Exchange) => Promise<void> | undefined;

interface FrontOptions {
  readonly cors: Cors;
  /** Tried in turn until one takes the request. */
  readonly doors: readonly Door[];
  readonly log: Logger;
  /** Whether connections should end with their next answer. */
  readonly isStopping: () => boolean;
}

/** The first to see a request: brings it to the door that it is for. */
export function createFront({ cors, doors, log, isStopping }: FrontOptions) {
  function serve(exchange: Exchange): Promise<void> {
    try {
      checkHost(exchange);
      for (const door of doors) {
        const served = door(exchange);
        if (served) {
          return served;
        }
      }
      return Promise.resolve();
    } catch (reason) {
      return Promise.reject(reason);
    }
  }

  function logUnlessCall({ call, path, status }: Exchange): void {
    if (!call.logged) {
      log.info({ request_id: call.requestId, path: withoutSecrets(path), status });
    }
  }

  function logFailure({ call }: Exchange, reason: unknown): void {
    log.error({ request_id: call.requestId, err: reason });
  }

  function refuse(exchange: Exchange, reason: unknown): void {
    if (!(reason instanceof ConnectError)) {
      logFailure(exchange, reason);
    }
    sendProblem(exchange, reason);
    exchange.dropBody();
  }

  return (exchange: Exchange): void => {
    if (isStopping() && exchange.version !== "2.0") {
      exchange.addHeader("connection", "close");
    }
    if (cors(exchange)) {
      return;
    }
    exchange.onClose = logUnlessCall;
    serve(exchange)
      .then(
        () => exchange.dropBody(),
        (reason) => refuse(exchange, reason),
      )
      .catch((reason) => logFailure(exchange, reason));
  };
}

/** HTTP/1.1 wants every request to name its host. */
function checkHost({ version, headers }: Exchange): void {
  if (version === "1.1" && headers.host === undefined) {
    throw invalidRequest({ field: "host", message: "is missing: send the Host header" });
  }
}

/** A key that was pasted into a path, encoded or not, must not reach the log. */
function withoutSecrets(path: string): string {
  return path.replaceAll(/(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g, "…");
}
