/** The lower bound for gRPC: constant messages on `node:http2`, without a gRPC library. */
import { createServer, type ServerHttp2Stream } from "node:http2";
import { encodeGrpcFrame } from "../load/http2-client.js";

const { PORT, HOST, RESPONSES = "{}" } = process.env;
const frames = new Map(
  Object.entries(JSON.parse(RESPONSES) as Record<string, string>).map(([path, message]) => [
    path,
    encodeGrpcFrame(Buffer.from(message, "base64")),
  ]),
);
const headers = { ":status": 200, "content-type": "application/grpc" };
const trailers = { "grpc-status": "0" };

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(trailers);
}

createServer()
  .on("stream", (stream, { ":path": path }) => {
    stream.resume();
    stream.respond(headers, { waitForTrailers: true });
    stream.on("wantTrailers", sendTrailers);
    stream.end(frames.get(path as string));
  })
  .listen(Number(PORT), HOST);
