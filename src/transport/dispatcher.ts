import { randomUUID } from "node:crypto";
import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { RedactKeys } from "../auth/keys.js";
import type { Limits } from "../config/limits.js";
import { mayBeImportedKey } from "../contract/key-text.js";
import { headersTooLarge, invalidRequest, Problem, urlTooLong } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import type { Cors } from "./http/cors.js";
import { type Exchange, type Handled, type RequestHandler, unlogged } from "./http/exchange.js";
import { isGrpcType, strictTransportSecurity } from "./http/headers.js";
import { sendProblem } from "./http/responses.js";
import { webPageAt } from "./system/web-pages.js";

type SizeLimits = Pick<Limits, "headerCount" | "headerSize" | "urlSize">;

interface DispatcherOptions {
  readonly cors: Cors;
  /** Tried in this order until one handles the request. The last one handles every request. */
  readonly handlers: readonly RequestHandler[];
  readonly log: Logger;
  /** Whether all connections use TLS. */
  readonly isSecure: boolean;
  /** Called at the end of each request that is not a call. */
  readonly onOtherRequest?: ((exchange: Exchange) => void) | undefined;
  readonly limits: SizeLimits;
  /** Whether keys that were created elsewhere are accepted. */
  readonly importedKeys: boolean;
  readonly redactKeys: RedactKeys;
}

/** Creates the dispatcher: checks each request and passes it to the first handler that accepts it. */
export function createDispatcher(options: DispatcherOptions) {
  const { cors, handlers, log, isSecure, onOtherRequest, limits, importedKeys, redactKeys } =
    options;

  function dispatch(exchange: Exchange): MaybePromise<Handled> {
    assertHost(exchange);
    assertTransferEncoding(exchange);
    for (const handle of handlers) {
      const result = handle(exchange);
      if (result) {
        return result;
      }
    }
    throw new Error("no handler accepted the request");
  }

  function finish(exchange: Exchange, result: Handled): void {
    exchange.finish();
    if (result === unlogged) {
      logRequest(exchange);
    }
  }

  function finishLater(exchange: Exchange, result: Promise<Handled>): void {
    exchange.watchClose();
    result
      .then(
        (result) => finish(exchange, result),
        (reason) => refuse(exchange, reason),
      )
      .catch((reason) => logFailure(exchange, reason));
  }

  /** Logs a request that is not a call. */
  function logRequest(exchange: Exchange): void {
    const { requestId, startedAt, method, path, headers, status, problemCode } = exchange;
    onOtherRequest?.(exchange);
    // Debug level: one page loads many assets.
    const isAsset = webPageAt(path) === "assets" && problemCode === undefined;
    log[isAsset ? "debug" : "info"]({
      request_id: requestId,
      // Over HTTP/2 the method may be any string.
      method: redactKeys(method).slice(0, limits.urlSize),
      path: redactKeys(path).slice(0, limits.urlSize),
      protocol: isGrpcType(headers) ? "grpc" : "rest",
      status,
      ...(problemCode !== undefined && { code: problemCode }),
      duration_ms: Math.round((performance.now() - startedAt) * 1_000) / 1_000,
    });
  }

  function logFailure({ requestId }: Exchange, reason: unknown): void {
    const fields = { request_id: requestId, err: reason };
    log.error(fields, "unexpected error while handling a request");
  }

  function refuse(exchange: Exchange, reason: unknown): void {
    if (!(reason instanceof ConnectError)) {
      logFailure(exchange, reason);
    }
    try {
      sendProblem(exchange, reason);
      finish(exchange, unlogged);
    } catch (failure) {
      logFailure(exchange, failure);
    }
  }

  return (exchange: Exchange): void => {
    if (importedKeys && mayBeImportedKey(exchange.requestId)) {
      exchange.requestId = randomUUID();
    }
    if (isSecure) {
      exchange.addHeader(...strictTransportSecurity);
    }
    const preflightHeaders = cors(exchange);
    const tooLarge = checkSize(exchange, limits);
    if (tooLarge) {
      refuse(exchange, tooLarge);
      if (exchange.hasBody) {
        // Its headers stay in memory until it ends.
        exchange.abortBodySoon();
      }
      return;
    }
    if (preflightHeaders) {
      exchange.send(204, preflightHeaders);
      logRequest(exchange);
      return;
    }
    try {
      const result = dispatch(exchange);
      if (result instanceof Promise) {
        finishLater(exchange, result);
      } else {
        finish(exchange, result);
      }
    } catch (reason) {
      refuse(exchange, reason);
    }
  };
}

/** HTTP/1.1 requires exactly one Host header. */
function assertHost(exchange: Exchange): void {
  const { host } = exchange.headers;
  if (exchange.version === "1.1" && host === undefined) {
    throw invalidRequest({ field: "host", message: "is missing; send the Host header" });
  }
  // A proxy in front may have used another one.
  if (host !== undefined && exchange.isRepeated("host")) {
    throw invalidRequest({ field: "host", message: "is repeated; send one Host header" });
  }
}

/** If the end of a body is ambiguous, its rest could be taken for another request (smuggling). */
function assertTransferEncoding(exchange: Exchange): void {
  const { "transfer-encoding": coding } = exchange.headers;
  if (coding !== undefined && !/(?:^|,\s*)chunked$/i.test(coding)) {
    exchange.addHeader("connection", "close");
    throw invalidRequest({ field: "transfer-encoding", message: "must be chunked or absent" });
  }
}

/** Checks the limits that Node does not enforce. Over HTTP/1.1 Node drops excess headers silently. */
function checkSize(
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
    const detail = `A request may have at most ${limits.headerCount} headers. Send fewer headers.`;
    return new Problem("headers_too_large", detail);
  }
  return undefined;
}
