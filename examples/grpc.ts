// A @grpc/grpc-js server that accepts Latchkey keys. Run it with the key that the first start of
// Latchkey printed:
//
//     SVC_API_KEY=lk_mgt_… npx tsx examples/grpc.ts
import assert from "node:assert/strict";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { accessOf, createGuardInterceptor } from "latchkey/client/grpc";
import { setUp } from "./setup.js";

const { guard, callerKey, revokeCaller, cleanUp } = await setUp();

// The contract. In your service it comes from a .proto file.
interface Token {
  readonly id: string;
  readonly container: string;
}
const path = "/vault.Tokens/Read";
const write = (message: object) => Buffer.from(JSON.stringify(message));
const parse = (bytes: Buffer) => JSON.parse(bytes.toString());
const requests = { requestStream: false, requestSerialize: write, requestDeserialize: parse };
const answers = { responseStream: false, responseSerialize: write, responseDeserialize: parse };

// The service. The rules of a caller decide how much of a token it sees.
const read: grpc.handleUnaryCall<Token, object> = (call, answer) => {
  answer(null, { id: call.request.id, shown: accessOf(call).transform });
};
const mayRead = createGuardInterceptor(guard, {
  permission: "token:read",
  token({ message }) {
    const { id, container } = message as Token;
    return { id, container };
  },
});
const server = new grpc.Server({ interceptors: [mayRead] });
server.addService({ read: { path, ...requests, ...answers } }, { read });
const bind = promisify(server.bindAsync.bind(server));
const port = await bind("localhost:0", grpc.ServerCredentials.createInsecure());

// Callers.
const client = new grpc.Client(`localhost:${port}`, grpc.credentials.createInsecure());
function call(token: Token, metadata: grpc.Metadata): Promise<grpc.status> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, write, parse, token, metadata, (error, answer) => {
      const code = error?.code ?? grpc.status.OK;
      const told = error?.details ?? JSON.stringify(answer);
      console.log(`Read ${token.id}: ${grpc.status[code]} ${told}`);
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
