/**
 * The server under test. The runner starts it once for each kind of server
 * that it wants, says on stdin which, and is told on stdout where it is. Both
 * are a message behind its length in four bytes.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Implementation } from "../../src/transport/rpc/methods.js";
import { createHandlers } from "./handlers.js";
import { mount } from "./mount.js";
import { readProtos, type ServerCompatRequest } from "./protos.js";

const lengthSize = 4;
const defaultLimit = 1024 * 1024;

const protos = readProtos(process.argv[2] ?? "");

async function readRequest(): Promise<ServerCompatRequest> {
  let input = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    input = Buffer.concat([input, chunk]);
    if (input.length >= lengthSize && input.length >= lengthSize + input.readUInt32BE()) {
      break;
    }
  }
  const bytes = input.subarray(lengthSize, lengthSize + input.readUInt32BE());
  return fromBinary(protos.message("ServerCompatRequest"), bytes) as ServerCompatRequest;
}

function writeResponse(response: Record<string, unknown>): void {
  const schema = protos.message("ServerCompatResponse");
  const bytes = toBinary(schema, create(schema, response));
  const length = Buffer.alloc(lengthSize);
  length.writeUInt32BE(bytes.length);
  process.stdout.write(Buffer.concat([length, bytes]));
}

const { useTls, serverCreds, messageReceiveLimit } = await readRequest();
const tls = useTls && serverCreds;
const { address, port } = await mount({
  implementation: {
    service: protos.service("ConformanceService"),
    handlers: createHandlers(protos) as unknown as Implementation["handlers"],
  },
  bodyLimit: messageReceiveLimit || defaultLimit,
  tls: tls ? { contents: { cert: Buffer.from(tls.cert), key: Buffer.from(tls.key) } } : undefined,
});
writeResponse({ host: address, port, pemCert: tls ? tls.cert : undefined });
// Nothing of its state is worth keeping, and the runner is done.
process.once("SIGTERM", () => process.exit());
