// The API behind the gateway. It returns each request as it arrived, and echoes WebSocket connections.
//
//     UPSTREAM_PORT=3000 node examples/gateways/upstream.mjs
import { createHash } from "node:crypto";
import { createServer } from "node:http";

const port = Number(process.env.UPSTREAM_PORT ?? 3000);

const server = createServer(async (request, response) => {
  const { method, url: path, headers } = request;
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks).toString();
  response.setHeader("content-type", "application/json");
  response.end(`${JSON.stringify({ method, path, headers, body }, undefined, 2)}\n`);
});

server.on("upgrade", ({ headers }, socket) => {
  const { "x-latchkey-application-id": application = "", "sec-websocket-key": key = "" } = headers;
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  socket.on("error", () => socket.destroy());
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      `Sec-WebSocket-Accept: ${accept.digest("base64")}\r\nX-Application: ${application}\r\n\r\n`,
  );
  socket.pipe(socket);
});

server.listen(port, "127.0.0.1", () => {
  console.log(`Upstream at http://127.0.0.1:${server.address().port}`);
});
