import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag } from "@connectrpc/connect/protocol-grpc-web";
import type { Problem } from "../../../errors.js";
import type { HeaderList } from "../../http/headers.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { toHeaderList } from "../call.js";
import { envelopeSize, openEnvelope, type Protocol } from "./protocol.js";

export const contentType: HeaderList = ["content-type", "application/grpc+proto"];
export const okStatus: HeaderList = ["grpc-status", "0"];

/** gRPC, which needs HTTP/2 trailers. */
export const grpc: Protocol<Http2Exchange> = {
  name: "grpc",
  overhead: envelopeSize,
  format: "binary",

  unwrap: openEnvelope,

  respond(exchange, { headerList, trailerList }, codec, message) {
    exchange.sendWithTrailers(
      headerList.length === 0 ? contentType : [...contentType, ...headerList],
      codec.encode(message),
      trailerList.length === 0 ? okStatus : [...okStatus, ...trailerList],
    );
  },

  respondWithError(exchange, { headerList, trailerList }, problem) {
    const trailers = [...trailerList, ...statusTrailers(problem)];
    if (headerList.length === 0) {
      exchange.sendTrailersOnly([...contentType, ...trailers]);
    } else {
      exchange.beginStream([...contentType, ...headerList]);
      exchange.finishStream(trailers);
    }
  },
};

/** The trailers of a failed call in gRPC and gRPC-Web. */
export function statusTrailers(problem: Problem): HeaderList {
  const trailer = new Headers();
  setTrailerStatus(trailer, problem);
  // See withGrpcMessageEncoding.
  trailer.set(grpcMessage, encodeMessage(problem.rawMessage));
  return toHeaderList(trailer);
}

export const grpcMessage = "grpc-message";

/**
 * The library percent-encodes more of an error message than gRPC requires, and some
 * clients do not decode that. The trailers are set while the body is sent, so they
 * are encoded again when they are read.
 */
export function withGrpcMessageEncoding(
  response: UniversalServerResponse,
): UniversalServerResponse {
  const { trailer } = response;
  if (!trailer) {
    return response;
  }
  return {
    ...response,
    get trailer() {
      const message = trailer.get(grpcMessage);
      if (message) {
        trailer.set(grpcMessage, encodeMessage(decodeURIComponent(message)));
      }
      return trailer;
    },
  };
}

/** Percent-encodes everything except printable ASCII without the percent sign. */
export function encodeMessage(message: string): string {
  return message.replace(/[^ -$&-~]+/g, encodeURIComponent);
}

const webContentType: HeaderList = ["content-type", "application/grpc-web+proto"];
const okFrame = trailerFrame(okStatus);

/** gRPC-Web, with the trailers in the body: browsers expose no HTTP trailers. */
export const grpcWeb: Protocol = {
  name: "grpc-web",
  overhead: envelopeSize,
  format: "binary",

  unwrap: openEnvelope,

  respond(exchange, { headerList, trailerList }, codec, message) {
    const trailers =
      trailerList.length === 0 ? okFrame : trailerFrame([...okStatus, ...trailerList]);
    const body = Buffer.concat([codec.encode(message), trailers]);
    exchange.send(200, [...webContentType, ...headerList], body);
  },

  respondWithError(exchange, { headerList, trailerList }, problem) {
    const trailers = trailerFrame([...trailerList, ...statusTrailers(problem)]);
    exchange.send(200, [...webContentType, ...headerList], trailers);
  },
};

function trailerFrame(trailers: HeaderList): Buffer {
  let text = "";
  for (let index = 0; index < trailers.length; index += 2) {
    text += `${trailers[index]}: ${trailers[index + 1]}\r\n`;
  }
  const frame = Buffer.allocUnsafe(envelopeSize + Buffer.byteLength(text));
  frame[0] = trailerFlag;
  frame.writeUInt32BE(frame.length - envelopeSize, 1);
  frame.write(text, envelopeSize);
  return frame;
}
