import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { WithoutSecrets } from "../auth/keys.js";
import type { Limits } from "../config/limits.js";
import { mayBeForeignKey } from "../contract/key-format.js";
import { headersTooLarge, invalidRequest, Problem, urlTooLong } from "../errors.js";
import type { MaybePromise } from "../lib/maybe-promise.js";
import type { Cors } from "./http/cors.js";
import type { Exchange } from "./http/exchange.js";
import { type Door, type Served, served } from "./http/exchange.js";
import { tlsOnly } from "./http/headers.js";
import { sendProblem } from "./http/responses.js";

type SizeLimits = Pick<Limits, "headerCount" | "headerSize" | "urlSize">;

interface FrontOptions {
  readonly cors: Cors;
  /** Tried in turn until one takes the request. */
  readonly doors: readonly Door[];
  readonly log: Logger;
  /** Whether all connections come by TLS. */
  readonly isSecure: boolean;
  /** Called with each request that is no call, when it is over. */
  readonly onPage?: ((exchange: Exchange) => void) | undefined;
  readonly limits: SizeLimits;
  /** Whether keys work that were made elsewhere. */
  readonly foreignKeys: boolean;
  readonly withoutSecrets: WithoutSecrets;
}

/** The first to see a request: brings it to the door that it is for. */
export function createFront(options: FrontOptions) {
  const { cors, doors, log, isSecure, onPage, limits, foreignKeys, withoutSecrets } = options;

  function serve(exchange: Exchange): MaybePromise<Served> {
    checkHost(exchange);
    checkEnd(exchange);
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

  function logUnlessCall(exchange: Exchange): void {
    const { call, method, path, status, code } = exchange;
    if (!call.logged) {
      onPage?.(exchange);
      log.info({
        request_id: call.requestId,
        // Over HTTP/2 it may be any word.
        method: withoutSecrets(method).slice(0, limits.urlSize),
        path: withoutSecrets(path).slice(0, limits.urlSize),
        protocol: call.protocol,
        status,
        ...(code !== undefined && { code }),
        duration_ms: Math.round((performance.now() - call.startedAt) * 1_000) / 1_000,
      });
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
    if (foreignKeys && mayBeForeignKey(exchange.call.requestId)) {
      exchange.call.requestId = randomUUID();
    }
    if (isSecure) {
      exchange.addHeader(...tlsOnly);
    }
    const preflightHeaders = cors(exchange);
    const tooLarge = sizeProblem(exchange, limits);
    if (tooLarge) {
      refuseNow(exchange, tooLarge);
      if (exchange.hasBody) {
        // Its headers are kept for as long as it is open.
        exchange.cutOffBodySoon();
      }
      return;
    }
    if (preflightHeaders) {
      exchange.send(204, preflightHeaders);
      logUnlessCall(exchange);
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

/** HTTP/1.1 wants every request to name its host, and only one. */
function checkHost({ version, headers, hasSeveralHosts }: Exchange): void {
  if (version === "1.1" && headers.host === undefined) {
    throw invalidRequest({ field: "host", message: "is missing: send the Host header" });
  }
  // A proxy in front may have taken another one of them.
  if (hasSeveralHosts) {
    throw invalidRequest({
      field: "host",
      message: "is there more than once: send one Host header",
    });
  }
}

/** Where nobody can tell the end of a body, what follows could be taken for another request. */
function checkEnd(exchange: Exchange): void {
  const { "transfer-encoding": coding } = exchange.headers;
  if (coding !== undefined && !/(?:^|,\s*)chunked$/i.test(coding)) {
    exchange.addHeader("connection", "close");
    throw invalidRequest({ field: "transfer-encoding", message: "must be chunked, or not there" });
  }
}

/** What Node itself lets pass. Of headers over HTTP/1.1 it would merely leave some off. */
function sizeProblem(
  { url, headerCount, headerSize }: Exchange,
  limits: SizeLimits,
): Problem | undefined {
  if (url.length > limits.urlSize) {
    return urlTooLong(limits.urlSize);
  }
  if (headerSize > limits.headerSize) {
    return headersTooLarge(limits.headerSize);
  }
  if (headerCount > limits.headerCount) {
    const detail = `There may be at most ${limits.headerCount} headers. Send fewer.`;
    return new Problem("headers_too_large", detail);
  }
  return undefined;
}
