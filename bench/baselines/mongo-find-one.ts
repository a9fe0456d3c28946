/**
 * A service on MongoDB that does not combine lookups: one `findOne` per request,
 * with the same driver and read concern as Latchkey.
 */
import { createServer, type ServerResponse } from "node:http";
import { type Binary, MongoClient, ReadConcern, UUID } from "mongodb";
import { applicationsName } from "../../src/store/mongo/collections.js";

const { PORT, HOST, MONGODB_URI = "", MONGODB_DATABASE } = process.env;
const client = await new MongoClient(MONGODB_URI).connect();
const applications = client
  .db(MONGODB_DATABASE, { readConcern: new ReadConcern("majority"), readPreference: "primary" })
  .collection<{ _id: Binary }>(applicationsName);

async function respond(id: string, response: ServerResponse): Promise<void> {
  const document = await applications.findOne({ _id: new UUID(id) });
  const body = Buffer.from(JSON.stringify(document));
  response.writeHead(document ? 200 : 404, {
    "content-type": "application/json",
    "content-length": body.length,
  });
  response.end(body);
}

createServer((request, response) => {
  respond(request.headers["svc-api-key"] as string, response).catch((error) => {
    response.writeHead(500).end(String(error));
  });
}).listen(Number(PORT), HOST);
