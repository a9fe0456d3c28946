import type { Interceptors } from "../interceptors/interceptors.js";
import type { Door } from "./door.js";
import { createStreamRpc } from "./grpc-stream/stream-rpc.js";
import type { Implementation } from "./implementation.js";
import { jsonOptionsFor } from "./json-options.js";
import { mountMethods } from "./mounted-method.js";
import { createRpc } from "./rpc.js";
import { createUnaryRpc } from "./unary-rpc.js";
import type { WithoutSecrets } from "./without-secrets.js";

export interface RpcOptions {
  readonly implementations: readonly Implementation[];
  /** Services about the server itself, which need no key. */
  readonly openImplementations: readonly Implementation[];
  readonly interceptors: Interceptors;
  readonly bodyLimit: number;
  /** How deep JSON may be nested. */
  readonly jsonDepth: number;
  /** Milliseconds that the caller of a stream may take to read a part of it. */
  readonly patience: number;
  readonly withoutSecrets: WithoutSecrets;
}

/** How many bytes may be sent to those that need no key: a name is all that they are asked for. */
export const openBodyLimit = 4 * 1024;

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
