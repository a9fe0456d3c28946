// An Express service that accepts Latchkey keys. Run it with the key that the first start of Latchkey
// printed:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/express.ts
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { accessOf, guardExpress } from "latchkey/client/express";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// The service. The rules of a caller decide how much of a token it sees.
const mayRead = guardExpress<{ container: string; id: string }>(guard, {
  permission: "token:read",
  token: ({ params }) => ({ id: params.id, container: `/${params.container}/` }),
});
const app = express();
app.get("/:container/:id", mayRead, (request, response) => {
  response.json({ id: request.params.id, shown: accessOf(request).transform });
});
const server = app.listen(0);
await once(server, "listening");
const { port } = server.address() as AddressInfo;

// Callers.
async function read(path: string, headers: Record<string, string>) {
  const response = await fetch(`http://localhost:${port}${path}`, { headers });
  const body = (await response.json()) as { detail?: string };
  console.log(`GET ${path}: ${response.status} ${body.detail ?? JSON.stringify(body)}`);
  return response.status;
}
const withKey = { "SVC-API-KEY": callerKey };

assert.equal(await read("/pci/card-4242", withKey), 200);
assert.equal(await read("/pii/email-7", withKey), 403);
assert.equal(await read("/pci/card-4242", {}), 401);

await revokeCaller();
assert.equal(await read("/pci/card-4242", withKey), 401);

server.close();
await cleanUp();
