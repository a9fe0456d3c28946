// An Express service that checks the Latchkey keys of its callers. Set SVC_API_KEY to the key from
// the first start of Latchkey:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/express.ts
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { accessOf, guardExpress } from "latchkey/client/express";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// The service. A token is a vaulted data item. The rules of the caller decide how much it reveals.
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

// The callers.
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
