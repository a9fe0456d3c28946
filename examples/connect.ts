// A Connect server that checks the Latchkey keys of its callers. Set SVC_API_KEY to the key from
// the first start of Latchkey:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/connect.ts
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isMessage } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { accessOf, createGuardInterceptor } from "latchkey/client/connect";
import { Health, HealthCheckRequestSchema } from "../gen/grpc/health/v1/health_pb.js";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// The service. The health service stands in for yours. Here it checks containers of tokens, the
// vaulted data items of your service.
const mayRead = createGuardInterceptor(guard, {
  permission: "token:read",
  token: ({ message }) =>
    isMessage(message, HealthCheckRequestSchema) ? { container: message.service } : undefined,
});
const adapter = connectNodeAdapter({
  interceptors: [mayRead],
  routes: (router) =>
    router.service(Health, {
      check({ service }, context) {
        console.log(`Transform for ${service}: ${accessOf(context).transform}`);
        return { status: 1 };
      },
    }),
});
const server = createServer(adapter).listen(0);
await once(server, "listening");
const { port } = server.address() as AddressInfo;

// The callers.
const baseUrl = `http://localhost:${port}`;
const health = createClient(Health, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
async function check(service: string, headers: Record<string, string>) {
  const result = await health.check({ service }, { headers }).catch(ConnectError.from);
  console.log(`Check ${service}: ${result instanceof ConnectError ? result.message : "good"}`);
  return result instanceof ConnectError ? result.code : "good";
}
const withKey = { "SVC-API-KEY": callerKey };

assert.equal(await check("/pci/", withKey), "good");
assert.equal(await check("/pii/", withKey), Code.PermissionDenied);
assert.equal(await check("/pci/", {}), Code.Unauthenticated);

await revokeCaller();
assert.equal(await check("/pci/", withKey), Code.Unauthenticated);

server.close();
await cleanUp();
