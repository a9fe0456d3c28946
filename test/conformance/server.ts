/**
 * The server under test. The runner starts one for each server configuration,
 * sends the configuration on stdin and reads the address from stdout. Both
 * messages have a length prefix of four bytes.
 */
import type { AddressInfo } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createKeyRedactor } from "../../src/auth/keys.js";
import { readSettings } from "../../src/config/settings.js";
import type { TlsContents } from "../../src/config/tls.js";
import { Problem } from "../../src/errors.js";
import { createResponseBudget } from "../../src/lib/response-budget.js";
import { createCallLimit } from "../../src/middleware/call-limit.js";
import { createDeadline } from "../../src/middleware/deadline.js";
import { createObserve } from "../../src/middleware/observe.js";
import { createUnauthenticatedPipeline } from "../../src/middleware/pipeline.js";
import { createStreamLimit } from "../../src/middleware/stream-limit.js";
import { createLogger } from "../../src/telemetry/log.js";
import { createDispatcher } from "../../src/transport/dispatcher.js";
import { createCors } from "../../src/transport/http/cors.js";
import { createListener } from "../../src/transport/listener/listener.js";
import { createRestHandler } from "../../src/transport/rest/handler.js";
import type { Implementation } from "../../src/transport/rpc/methods.js";
import { createRpcHandler } from "../../src/transport/rpc/rpc.js";
import { createHandlers } from "./handlers.js";
import { readProtos, type ServerCompatRequest } from "./protos.js";

const lengthSize = 4;
const defaultLimit = 1024 * 1024;
const { requestTimeout, limits } = readSettings({});
const protos = readProtos(process.argv[2] ?? "");

// The runner expects only the details that a test requests, so ours are disabled.
Problem.prototype.attachDetails = () => {};

const { useTls, serverCreds, messageReceiveLimit } = await readRequest();
const tls = useTls && serverCreds;
const { address, port } = await listen({
  implementation: {
    service: protos.service("ConformanceService"),
    handlers: createHandlers(protos) as unknown as Implementation["handlers"],
  },
  bodyLimit: messageReceiveLimit || defaultLimit,
  tls: tls ? { contents: { cert: Buffer.from(tls.cert), key: Buffer.from(tls.key) } } : undefined,
});
writeResponse({ host: address, port, pemCert: tls ? tls.cert : undefined });
// There is no state to save, so no graceful shutdown is needed.
process.once("SIGTERM", () => process.exit());

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

interface ListenOptions {
  readonly implementation: Implementation;
  readonly bodyLimit: number;
  readonly tls: { readonly contents: TlsContents } | undefined;
}

/** Serves an implementation with the transport of the product, but without authentication. */
function listen({ implementation, bodyLimit, tls }: ListenOptions): Promise<AddressInfo> {
  const log = createLogger("silent", { write() {} });
  const redactKeys = createKeyRedactor(false);
  const pipeline = createUnauthenticatedPipeline({
    observe: createObserve(log),
    withDeadline: createDeadline(requestTimeout),
    streamLimit: createStreamLimit(limits.streams, () => undefined),
    callLimit: createCallLimit(limits.calls),
    validate: () => undefined,
  });
  const rpcHandler = createRpcHandler({
    implementations: [implementation],
    unauthenticatedImplementations: [],
    pipelines: { authenticated: pipeline, unauthenticated: pipeline },
    bodyLimit,
    jsonDepth: limits.jsonDepth,
    writeTimeoutMs: requestTimeout,
    redactKeys,
  });
  const restHandler = createRestHandler({
    implementations: [],
    unauthenticatedImplementations: [],
    pipelines: { authenticated: pipeline, unauthenticated: pipeline },
    bodyLimit,
    jsonDepth: limits.jsonDepth,
    listItems: limits.listItems,
  });
  const dispatcher = createDispatcher({
    cors: createCors({ corsOrigins: [], keyHeader: "X-API-Key", bearerKeys: false }),
    handlers: [rpcHandler, restHandler],
    log,
    isSecure: tls !== undefined,
    importedKeys: false,
    redactKeys,
    limits,
  });
  return createListener({
    onExchange: dispatcher,
    limits,
    responseBudget: createResponseBudget(limits.responseBudget),
    trustedProxies: [],
    tls,
  }).listen(0, "127.0.0.1");
}
