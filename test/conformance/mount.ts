import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { readSettings } from "../../src/config.js";
import { Problem } from "../../src/errors.js";
import { createDeadlineInterceptor } from "../../src/interceptors/deadline.js";
import type { Interceptors } from "../../src/interceptors/interceptors.js";
import { createLimitStreamsInterceptor } from "../../src/interceptors/limit-streams.js";
import { createObserveInterceptor } from "../../src/interceptors/observe.js";
import { createCors } from "../../src/server/cors.js";
import { createFront } from "../../src/server/front.js";
import type { Implementation } from "../../src/server/implementation.js";
import { createListener } from "../../src/server/listener.js";
import { createGateway } from "../../src/server/rest/gateway.js";
import { createRpcDoors } from "../../src/server/rpc-doors.js";
import { createWithoutSecrets } from "../../src/server/without-secrets.js";
import type { TlsContents } from "../../src/tls-files.js";

// The runner wants the details that a test asks for and no others, so ours, which say which problem
// of which request an error is, stay off. Everything else about our errors is judged as it is.
Problem.prototype.describeFor = () => {};

interface MountOptions {
  readonly implementation: Implementation;
  readonly bodyLimit: number;
  readonly tls: { readonly contents: TlsContents } | undefined;
}

const { requestTimeout, limits } = readSettings({});

/** Serves a service with the parts that our own services are served with, but without a key. */
export function mount({ implementation, bodyLimit, tls }: MountOptions): Promise<AddressInfo> {
  const log = pino({ level: "silent" });
  const withoutSecrets = createWithoutSecrets(false);
  const interceptors: Interceptors = {
    observe: createObserveInterceptor(log),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [],
    readmission: [],
    limitStreams: createLimitStreamsInterceptor(limits.streams, () => undefined),
    inspection: [],
  };
  const rpcDoors = createRpcDoors({
    implementations: [implementation],
    openImplementations: [],
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
    patience: requestTimeout,
    withoutSecrets,
  });
  const gateway = createGateway({
    implementations: [],
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
  });
  const front = createFront({
    cors: createCors([], "X-API-Key"),
    doors: [...rpcDoors, gateway],
    log,
    isSecure: tls !== undefined,
    foreignKeys: false,
    withoutSecrets,
    limits,
  });
  return createListener({ onExchange: front, limits, trustedProxies: [], tls }).listen(
    0,
    "127.0.0.1",
  );
}
