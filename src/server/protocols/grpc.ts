import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Problem } from "../../errors.js";
import { listOf } from "../call-request.js";
import { encodeMessage, grpcMessage } from "../grpc-message.js";
import type { HeaderList } from "../header-list.js";
import type { Http2Exchange } from "../http2-exchange.js";
import { envelopeSize, openEnvelope } from "./envelope.js";
import type { Protocol } from "./protocol.js";

export const contentType: HeaderList = ["content-type", "application/grpc+proto"];
export const ok: HeaderList = ["grpc-status", "0"];

/** gRPC, which needs the trailers of HTTP/2. */
export const grpc: Protocol<Http2Exchange> = {
  name: "grpc",
  overhead: envelopeSize,
  format: "binary",

  unwrap: openEnvelope,

  answer(exchange, { headerList, trailerList }, codec, message) {
    exchange.sendWithTrailers(
      headerList.length === 0 ? contentType : [...contentType, ...headerList],
      codec.encode(message),
      trailerList.length === 0 ? ok : [...ok, ...trailerList],
    );
  },

  refuse(exchange, { headerList, trailerList }, problem) {
    const trailers = [...trailerList, ...statusTrailers(problem)];
    if (headerList.length === 0) {
      exchange.sendTrailersOnly([...contentType, ...trailers]);
    } else {
      exchange.beginStream([...contentType, ...headerList]);
      exchange.finishStream(trailers);
    }
  },
};

/** What tells of a problem in the trailers of gRPC and gRPC-Web. */
export function statusTrailers(problem: Problem): HeaderList {
  const trailer = new Headers();
  setTrailerStatus(trailer, problem);
  // The library encodes more of it than gRPC asks for, which some clients do not decode.
  trailer.set(grpcMessage, encodeMessage(problem.rawMessage));
  return listOf(trailer);
}
