// A @grpc/grpc-js server that checks the Latchkey keys of its callers. Set SVC_API_KEY to the key
// from the first start of Latchkey:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/grpc.ts
import assert from "node:assert/strict";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { accessOf, createGuardInterceptor } from "latchkey/client/grpc";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// Your service would generate this contract from a .proto file.
interface Token {
  readonly id: string;
  readonly container: string;
}
const path = "/vault.Tokens/Read";
const write = (message: object) => Buffer.from(JSON.stringify(message));
const parse = (bytes: Buffer) => JSON.parse(bytes.toString());
const requests = { requestStream: false, requestSerialize: write, requestDeserialize: parse };
const responses = { responseStream: false, responseSerialize: write, responseDeserialize: parse };

// The service. A token is a vaulted data item. The rules of the caller decide how much it reveals.
const read: grpc.handleUnaryCall<Token, object> = (call, callback) => {
  callback(null, { id: call.request.id, shown: accessOf(call).transform });
};
const mayRead = createGuardInterceptor(guard, {
  permission: "token:read",
  token({ message }) {
    const { id, container } = message as Token;
    return { id, container };
  },
});
const server = new grpc.Server({ interceptors: [mayRead] });
server.addService({ read: { path, ...requests, ...responses } }, { read });
const bind = promisify(server.bindAsync.bind(server));
const port = await bind("localhost:0", grpc.ServerCredentials.createInsecure());

// The callers.
const client = new grpc.Client(`localhost:${port}`, grpc.credentials.createInsecure());
function call(token: Token, metadata: grpc.Metadata): Promise<grpc.status> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, write, parse, token, metadata, (error, response) => {
      const code = error?.code ?? grpc.status.OK;
      const result = error?.details ?? JSON.stringify(response);
      console.log(`Read ${token.id}: ${grpc.status[code]} ${result}`);
      resolve(code);
    });
  });
}
const withKey = new grpc.Metadata();
withKey.set("SVC-API-KEY", callerKey);
const card = { id: "card-4242", container: "/pci/" };
const email = { id: "email-7", container: "/pii/" };

assert.equal(await call(card, withKey), grpc.status.OK);
assert.equal(await call(email, withKey), grpc.status.PERMISSION_DENIED);
assert.equal(await call(card, new grpc.Metadata()), grpc.status.UNAUTHENTICATED);

await revokeCaller();
assert.equal(await call(card, withKey), grpc.status.UNAUTHENTICATED);

client.close();
server.forceShutdown();
await cleanUp();
