/** The baseline: HTTP/1.1 and gRPC servers that return a fixed response. */
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";

const body = Buffer.alloc(500, "x");
const headers = { "content-type": "application/json", "content-length": body.length };

const http = createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});

const grpc = createHttp2Server();
grpc.on("stream", (stream) => {
  stream.resume();
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(body);
});

for (const server of [http, grpc]) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}
console.log(JSON.stringify({ http: http.address().port, grpc: grpc.address().port }));
