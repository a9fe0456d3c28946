import type { IncomingHttpHeaders } from "node:http";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { outOfTime } from "../../errors.js";
import type { Exchange } from "../http/exchange.js";
import { Http2Exchange } from "../http/http2-exchange.js";

const grpcTypes: ReadonlySet<string> = new Set(["application/grpc", "application/grpc+proto"]);
const encodings = ["content-encoding", "grpc-encoding", "connect-content-encoding"];

/** Whether a request makes use of nothing but what calls mostly do: nothing is compressed, say. */
export function isUsual({ method, headers }: Exchange): boolean {
  return method === "POST" && !isEncoded(headers) && !Number.isNaN(timeoutOf(headers));
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

/** Whether a request is one of gRPC with messages in binary. */
export function isGrpc(exchange: Exchange): exchange is Http2Exchange {
  return exchange instanceof Http2Exchange && grpcTypes.has(exchange.headers["content-type"] ?? "");
}

/** The longest that a timer can be set to; no call takes as long. */
const longest = 2 ** 31 - 1;

/** The headers in which callers say how much time they give their call. */
const parsers = [
  ["grpc-timeout", parseGrpcTimeout],
  ["connect-timeout-ms", parseConnectTimeout],
] as const;

/** The milliseconds that a caller gives its call, if it says so. Not a number where that cannot be read. */
export function timeoutOf(headers: IncomingHttpHeaders): number | undefined {
  for (const [name, parse] of parsers) {
    const value = headers[name];
    if (value !== undefined) {
      const { timeoutMs = Number.NaN } = parse(String(value), Number.MAX_SAFE_INTEGER);
      return timeoutMs > longest ? undefined : timeoutMs;
    }
  }
  return undefined;
}

/** Gives a call up when it has taken all the time that its caller gave it. Where that cannot be read there is no end. */
export function limitTime({ headers, call }: Exchange): void {
  const timeout = timeoutOf(headers);
  if (timeout !== undefined && !Number.isNaN(timeout)) {
    call.cancellation.cancelAfter(timeout, whenUp);
  }
}

const whenUp = () => outOfTime("The time that the caller gave the request is up.");
