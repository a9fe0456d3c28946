import { jsonOptionsFor } from "../codec/connect-json.js";
import type { Door } from "../http/exchange.js";
import type { RpcOptions } from "./implementation.js";
import { createRpc } from "./library/handler.js";
import { mountMethods } from "./methods.js";
import { createStreamRpc } from "./streams/stream.js";
import { createUnaryRpc } from "./unary.js";

/** The doors of gRPC, gRPC-Web and Connect: what is quick comes first, and what serves all of them last. */
export function createRpcDoors(options: RpcOptions): Door[] {
  const jsonOptions = jsonOptionsFor(options);
  const methods = mountMethods(options, jsonOptions);
  return [
    createUnaryRpc(options, methods),
    createStreamRpc(options, methods),
    createRpc(options, jsonOptions),
  ];
}
