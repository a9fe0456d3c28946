import type { IncomingHttpHeaders } from "node:http";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { deadlineExceeded } from "../../errors.js";
import type { Exchange } from "../http/exchange.js";
import { Http2Exchange } from "../http/http2-exchange.js";

const grpcTypes: ReadonlySet<string> = new Set(["application/grpc", "application/grpc+proto"]);
const encodings = ["content-encoding", "grpc-encoding", "connect-content-encoding"];

/** Whether the fast path supports a request: uncompressed, with a valid timeout. */
export function isFastPath({ method, headers }: Exchange): boolean {
  return method === "POST" && !isEncoded(headers) && !Number.isNaN(parseTimeout(headers));
}

function isEncoded(headers: IncomingHttpHeaders): boolean {
  for (const name of encodings) {
    const encoding = headers[name];
    if (encoding !== undefined && encoding !== "identity") {
      return true;
    }
  }
  return false;
}

/** Whether a request is gRPC with binary messages. */
export function isGrpc(exchange: Exchange): exchange is Http2Exchange {
  return exchange instanceof Http2Exchange && grpcTypes.has(exchange.headers["content-type"] ?? "");
}

/** The longest delay of a timer. No call takes that long. */
const maxTimerMs = 2 ** 31 - 1;

/** The timeout headers of the protocols. */
const parsers = [
  ["grpc-timeout", parseGrpcTimeout],
  ["connect-timeout-ms", parseConnectTimeout],
] as const;

/** The caller's timeout in milliseconds, if any. `NaN` if it is invalid. */
export function parseTimeout(headers: IncomingHttpHeaders): number | undefined {
  for (const [name, parse] of parsers) {
    const value = headers[name];
    if (value !== undefined) {
      const { timeoutMs = Number.NaN } = parse(String(value), Number.MAX_SAFE_INTEGER);
      return timeoutMs > maxTimerMs ? undefined : timeoutMs;
    }
  }
  return undefined;
}

/** Cancels a call after the caller's timeout. An invalid timeout is ignored. */
export function startTimeout({ headers, call }: Exchange): void {
  const timeout = parseTimeout(headers);
  if (timeout !== undefined && !Number.isNaN(timeout)) {
    call.cancellation.cancelAfter(timeout, timedOut);
  }
}

const timedOut = () => deadlineExceeded("The timeout that the caller set has expired.");
