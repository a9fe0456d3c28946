import { createJsonOptions } from "../codec/connect-json.js";
import type { RequestHandler } from "../http/exchange.js";
import type { RpcOptions } from "./implementation.js";
import { createLibraryHandler } from "./library/handler.js";
import { mountMethods } from "./methods.js";
import { createStreamHandler } from "./streams/stream.js";
import { createUnaryHandler } from "./unary.js";

/** Creates the handlers of gRPC, gRPC-Web and Connect: the fast paths first, the protocol library last. */
export function createRpcHandlers(options: RpcOptions): RequestHandler[] {
  const { implementations, openImplementations, jsonDepth } = options;
  const services = [...implementations, ...openImplementations].map(({ service }) => service);
  const jsonOptions = createJsonOptions(services, jsonDepth);
  const methods = mountMethods(options, jsonOptions);
  return [
    createUnaryHandler(options, methods),
    createStreamHandler(options, methods),
    createLibraryHandler(options, jsonOptions),
  ];
}
