import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { createKeyRedactor } from "../../src/auth/keys.js";
import { readSettings } from "../../src/config/settings.js";
import type { TlsContents } from "../../src/config/tls.js";
import { Problem } from "../../src/errors.js";
import { createDeadlineInterceptor } from "../../src/middleware/deadline.js";
import { createStreamLimitInterceptor } from "../../src/middleware/limits.js";
import { createObserveInterceptor } from "../../src/middleware/observe.js";
import type { Interceptors } from "../../src/middleware/pipeline.js";
import { createDispatcher } from "../../src/transport/dispatcher.js";
import { createCors } from "../../src/transport/http/cors.js";
import { createListener } from "../../src/transport/listener/listener.js";
import { createGateway } from "../../src/transport/rest/gateway.js";
import type { Implementation } from "../../src/transport/rpc/methods.js";
import { createRpcHandlers } from "../../src/transport/rpc/rpc.js";

// The runner wants the details that a test asks for and no others, so ours, which say which problem
// of which request an error is, stay off. Everything else about our errors is judged as it is.
Problem.prototype.attachDetails = () => {};

interface MountOptions {
  readonly implementation: Implementation;
  readonly bodyLimit: number;
  readonly tls: { readonly contents: TlsContents } | undefined;
}

const { requestTimeout, limits } = readSettings({});

/** Serves a service with the parts that our own services are served with, but without a key. */
export function mount({ implementation, bodyLimit, tls }: MountOptions): Promise<AddressInfo> {
  const log = pino({ level: "silent" });
  const redactKeys = createKeyRedactor(false);
  const interceptors: Interceptors = {
    observe: createObserveInterceptor(log),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [],
    reauthorization: [],
    limitStreams: createStreamLimitInterceptor(limits.streams, () => undefined),
    inspection: [],
  };
  const rpcDoors = createRpcHandlers({
    implementations: [implementation],
    openImplementations: [],
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
    writeTimeoutMs: requestTimeout,
    redactKeys,
  });
  const gateway = createGateway({
    implementations: [],
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
  });
  const front = createDispatcher({
    cors: createCors([], "X-API-Key"),
    handlers: [...rpcDoors, gateway],
    log,
    isSecure: tls !== undefined,
    foreignKeys: false,
    redactKeys,
    limits,
  });
  return createListener({ onExchange: front, limits, trustedProxies: [], tls }).listen(
    0,
    "127.0.0.1",
  );
}
