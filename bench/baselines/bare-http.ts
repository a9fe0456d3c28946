/**
 * The lower bound for HTTP: returns a constant body, the same bytes as Latchkey,
 * and does nothing else.
 */
import { createServer } from "node:http";

const { PORT, HOST, BODY = "" } = process.env;
const body = Buffer.from(BODY);
const headers = { "content-type": "application/json", "content-length": body.length };

createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
}).listen(Number(PORT), HOST);
