import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { Awaitable } from "../awaitable.js";
import { invalidRequest } from "../errors.js";
import type { Cors } from "./cors.js";
import { type Door, type Served, served } from "./door.js";
import type { Exchange } from "./exchange.js";
import { sendProblem } from "./http.js";

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
  function serve(exchange: Exchange): Awaitable<Served> {
    checkHost(exchange);
    for (const door of doors) {
      const answer = door(exchange);
      if (answer) {
        return answer;
      }
    }
    throw new Error("there is no door for what is for no other");
  }

  function serveLater(exchange: Exchange, answer: Promise<Served>): void {
    exchange.watch(logUnlessCall);
    answer
      .then(
        () => exchange.dropBody(),
        (reason) => refuse(exchange, reason),
      )
      .catch((reason) => logFailure(exchange, reason));
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

  function refuseNow(exchange: Exchange, reason: unknown): void {
    try {
      refuse(exchange, reason);
      logUnlessCall(exchange);
    } catch (failure) {
      logFailure(exchange, failure);
    }
  }

  return (exchange: Exchange): void => {
    if (isStopping() && exchange.version !== "2.0") {
      exchange.addHeader("connection", "close");
    }
    if (cors(exchange)) {
      return;
    }
    try {
      const answer = serve(exchange);
      if (answer !== served) {
        serveLater(exchange, answer);
        return;
      }
      exchange.dropBody();
      logUnlessCall(exchange);
    } catch (reason) {
      refuseNow(exchange, reason);
    }
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
