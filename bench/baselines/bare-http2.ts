/** The floor of HTTP/2: a server that knows the answer beforehand, as the one of HTTP/1.1 does. */
import { createServer } from "node:http2";

const { PORT, HOST, BODY = "" } = process.env;
const body = Buffer.from(BODY);
const headers = {
  ":status": 200,
  "content-type": "application/json",
  "content-length": body.length,
};

createServer()
  .on("stream", (stream) => {
    stream.respond(headers);
    stream.end(body);
  })
  .listen(Number(PORT), HOST);
