import { trailerFlag } from "@connectrpc/connect/protocol-grpc-web";
import type { HeaderList } from "../../http/headers.js";
import { okStatus, statusTrailers } from "./grpc.js";
import type { Protocol } from "./protocol.js";
import { envelopeSize, openEnvelope } from "./protocol.js";

const contentType: HeaderList = ["content-type", "application/grpc-web+proto"];
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
    exchange.send(200, [...contentType, ...headerList], body);
  },

  respondWithError(exchange, { headerList, trailerList }, problem) {
    const trailers = trailerFrame([...trailerList, ...statusTrailers(problem)]);
    exchange.send(200, [...contentType, ...headerList], trailers);
  },
};

function trailerFrame(trailers: HeaderList): Buffer {
  let text = "";
  for (let at = 0; at < trailers.length; at += 2) {
    text += `${trailers[at]}: ${trailers[at + 1]}\r\n`;
  }
  const frame = Buffer.allocUnsafe(envelopeSize + Buffer.byteLength(text));
  frame[0] = trailerFlag;
  frame.writeUInt32BE(frame.length - envelopeSize, 1);
  frame.write(text, envelopeSize);
  return frame;
}
