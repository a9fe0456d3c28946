import type { IncomingHttpHeaders } from "node:http";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { outOfTime } from "../errors.js";
import type { Exchange } from "./exchange.js";

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
    call.ending.endIn(timeout, whenUp);
  }
}

const whenUp = () => outOfTime("The time that the caller gave the request is up.");
