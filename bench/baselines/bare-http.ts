/**
 * The floor: a server that knows the answer beforehand. It gets the same
 * requests as Latchkey and sends the same bytes, and does nothing else.
 */
import { createServer } from "node:http";

const { PORT, HOST, BODY = "" } = process.env;
const body = Buffer.from(BODY);
const headers = { "content-type": "application/json", "content-length": body.length };

createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
}).listen(Number(PORT), HOST);
