/** The floor of gRPC: calls framed by hand on `node:http2`, answered with bytes known beforehand. */
import { createServer, type ServerHttp2Stream } from "node:http2";
import { grpcFrame } from "../load/http2-client.js";

const { PORT, HOST, ANSWERS = "{}" } = process.env;
const answers = new Map(
  Object.entries(JSON.parse(ANSWERS) as Record<string, string>).map(([path, answer]) => [
    path,
    grpcFrame(Buffer.from(answer, "base64")),
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
    stream.end(answers.get(path as string));
  })
  .listen(Number(PORT), HOST);
