/**
 * The lower bound for HTTP: returns a constant body, the same bytes as Latchkey,
 * and does nothing else.
 */
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";

const { PORT, HOST, PROTOCOL, BODY = "" } = process.env;
const body = Buffer.from(BODY);
const headers = { "content-type": "application/json", "content-length": body.length };
const http2Headers = { ":status": 200, ...headers };

const server =
  PROTOCOL === "http2"
    ? createHttp2Server().on("stream", (stream) => {
        stream.respond(http2Headers);
        stream.end(body);
      })
    : createServer((_request, response) => {
        response.writeHead(200, headers);
        response.end(body);
      });
server.listen(Number(PORT), HOST);
