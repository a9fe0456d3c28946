import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { Problem } from "../../src/errors.js";
import { createDeadlineInterceptor } from "../../src/interceptors/deadline.js";
import type { Interceptors } from "../../src/interceptors/interceptors.js";
import { createObserveInterceptor } from "../../src/interceptors/observe.js";
import { createReadStreamInterceptor } from "../../src/interceptors/read-stream.js";
import { createCors } from "../../src/server/cors.js";
import { createFront } from "../../src/server/front.js";
import type { Implementation } from "../../src/server/implementation.js";
import { createListener } from "../../src/server/listener.js";
import { createGateway } from "../../src/server/rest/gateway.js";
import { createRpcDoors } from "../../src/server/rpc-doors.js";

// The runner wants the details that a test asks for and no others, so ours, which say which problem
// of which request an error is, stay off. Everything else about our errors is judged as it is.
Problem.prototype.describeFor = () => {};

interface MountOptions {
  readonly implementation: Implementation;
  readonly bodyLimit: number;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

const requestTimeout = 10_000;

/** Serves a service that needs no key with the parts that our own services are served with. */
export function mount({ implementation, bodyLimit, tls }: MountOptions): Promise<AddressInfo> {
  const log = pino({ level: "silent" });
  const interceptors: Interceptors = {
    observe: createObserveInterceptor(log),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [],
    inspection: [],
    readStream: createReadStreamInterceptor(bodyLimit),
  };
  const rpcDoors = createRpcDoors({
    implementations: [],
    openImplementations: [implementation],
    interceptors,
    bodyLimit,
    patience: requestTimeout,
  });
  const gateway = createGateway({ implementations: [], interceptors, bodyLimit });
  const front = createFront({
    cors: createCors([], "X-API-Key"),
    doors: [...rpcDoors, gateway],
    log,
    isStopping: () => false,
  });
  return createListener({ onExchange: front, tls }).listen(0, "127.0.0.1");
}
