import type { IncomingHttpHeaders } from "node:http";
import { timeoutOf } from "./call-timeout.js";
import type { Exchange } from "./exchange.js";
import { Http2Exchange } from "./http2-exchange.js";

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
