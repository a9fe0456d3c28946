import { createInterceptors } from "../interceptors/interceptors.js";
import type { Commons } from "./commons.js";
import type { Door } from "./door.js";
import { createImplementations, createOpenImplementations } from "./implementations.js";
import { createPages } from "./pages.js";
import type { Readiness } from "./readiness.js";
import { createGateway } from "./rest/gateway.js";
import { createRpcDoors } from "./rpc-doors.js";
import { createWebPages } from "./web-pages.js";

interface DoorsOptions {
  readonly readiness: Readiness;
  /** Given when the server stops: it ends streams. */
  readonly stopping: AbortSignal;
  /** Tells the metrics, where a page shows them. */
  readonly scrape: (() => Promise<Buffer>) | undefined;
}

/** All ways to what the server offers, in the order in which they are tried: REST comes last, as it takes what is left. */
export function createDoors(
  commons: Commons,
  { readiness, stopping, scrape }: DoorsOptions,
): Door[] {
  const { bodyLimit, keyHeader, limits, requestTimeout, hasConsole } = commons.settings;
  const implementations = createImplementations({ ...commons, stopping });
  const methods = implementations.flatMap(({ service }) => service.methods);
  const shared = {
    implementations,
    interceptors: createInterceptors({ ...commons, methods }),
    bodyLimit,
    jsonDepth: limits.jsonDepth,
  };
  return [
    ...createRpcDoors({
      ...shared,
      openImplementations: createOpenImplementations(implementations, readiness, stopping),
      patience: requestTimeout,
      withoutSecrets: commons.withoutSecrets,
    }),
    createPages({ readiness, keyHeader, scrape }),
    ...(hasConsole ? [createWebPages({ keyHeader })] : []),
    createGateway(shared),
  ];
}
