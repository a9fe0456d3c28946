// A Fastify service that checks the Latchkey keys of its callers. Set SVC_API_KEY to the key from
// the first start of Latchkey:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/fastify.ts
import assert from "node:assert/strict";
import fastify from "fastify";
import { accessOf, guardFastify } from "latchkey/client/fastify";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// The service. A token is a vaulted data item. The rules of the caller decide how much it reveals.
interface TokenRoute {
  Params: { container: string; id: string };
}
const mayRead = guardFastify<TokenRoute>(guard, {
  permission: "token:read",
  token: ({ params }) => ({ id: params.id, container: `/${params.container}/` }),
});
const app = fastify();
app.get<TokenRoute>("/:container/:id", { onRequest: mayRead }, async (request) => ({
  id: request.params.id,
  shown: accessOf(request).transform,
}));
const url = await app.listen();

// The callers.
async function read(path: string, headers: Record<string, string>) {
  const response = await fetch(url + path, { headers });
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

await app.close();
await cleanUp();
