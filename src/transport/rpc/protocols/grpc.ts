import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { Problem } from "../../../errors.js";
import type { HeaderList } from "../../http/headers.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { listOf } from "../call.js";
import { envelopeSize, openEnvelope, type Protocol } from "./protocol.js";

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

export const grpcMessage = "grpc-message";

/**
 * The protocol library percent-encodes more of an error's message than gRPC
 * asks for, and some clients decode only what gRPC asks for. The trailers are
 * filled while the body is sent, so they are looked at when they are read.
 */
export function withReadableMessage(answer: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = answer;
  if (!trailer) {
    return answer;
  }
  return {
    ...answer,
    get trailer() {
      const message = trailer.get(grpcMessage);
      if (message) {
        trailer.set(grpcMessage, encodeMessage(decodeURIComponent(message)));
      }
      return trailer;
    },
  };
}

/** Leaves printable ASCII as it is, but for the percent sign. */
export function encodeMessage(message: string): string {
  return message.replace(/[^ -$&-~]+/g, encodeURIComponent);
}
