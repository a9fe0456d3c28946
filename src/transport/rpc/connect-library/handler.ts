import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouterOptions, createConnectRouter } from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
} from "@connectrpc/connect-node";
import type { RedactKeys } from "../../../auth/keys.js";
import { invalidRequest, methodNotAllowed } from "../../../errors.js";
import type { Pipeline } from "../../../middleware/pipeline.js";
import { createLibraryJsonOptions, type JsonOptions } from "../../codec/connect-json.js";
import { type Exchange, type Handled, type RequestHandler, unlogged } from "../../http/exchange.js";
import { isGrpcType } from "../../http/headers.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import {
  handlerOf,
  type Implementation,
  type RpcOptions,
  unauthenticatedBodyLimit,
} from "../methods.js";
import { encodeMessage, grpcMessage } from "../protocols/grpc.js";
import { parseTimeout } from "../protocols/protocol.js";
import { createLibraryMethod, interceptLibrary, type LibraryMethod } from "./method.js";
import { abortSlowMessages, limitBodyMemory, limitDecompression } from "./request-body.js";

/** Serves all RPC calls that the fast paths do not support with the Connect library. */
export function createLibraryHandler(
  options: RpcOptions,
  jsonOptions: JsonOptions,
): RequestHandler {
  const methods = createMethods(options, jsonOptions);

  async function handle(method: LibraryMethod, exchange: Exchange): Promise<Handled> {
    if (!method.allowedMethods.includes(exchange.method)) {
      throw methodNotAllowed(method.allowedMethods);
    }
    return method.handle(exchange, () => toUniversal(exchange, method));
  }

  return (exchange) => {
    const method = methods.get(exchange.path);
    return method ? handle(method, exchange) : refuseUnknownMethod(exchange, options.redactKeys);
  };
}

/** As on the fast path. A field that a later version adds must not be stored before it can be validated. */
const binaryOptions = { readUnknownFields: false, writeUnknownFields: false };

/** Creates the methods by path. */
function createMethods(
  { implementations, unauthenticatedImplementations, pipelines, ...options }: RpcOptions,
  jsonOptions: JsonOptions,
): ReadonlyMap<string, LibraryMethod> {
  function mount(
    implementations: readonly Implementation[],
    pipeline: Pipeline,
    bodyLimitOf: (method: DescMethod) => number,
    router: ConnectRouterOptions,
  ): [string, LibraryMethod][] {
    const mounted = createConnectRouter({ ...router, binaryOptions });
    for (const implementation of implementations) {
      for (const method of implementation.service.methods) {
        mounted.rpc(method, handlerOf(implementation, method) as never, {
          interceptors: [interceptLibrary],
          jsonOptions: createLibraryJsonOptions(method.input, jsonOptions),
          readMaxBytes: bodyLimitOf(method),
        });
      }
    }
    const { writeTimeoutMs } = options;
    return mounted.handlers.map((handler) => [
      handler.requestPath,
      createLibraryMethod({
        handler,
        pipeline,
        bodyLimit: bodyLimitOf(handler.method),
        writeTimeoutMs,
      }),
    ]);
  }

  return new Map([
    ...mount(implementations, pipelines.authenticated, () => options.bodyLimit, {
      acceptCompression: limitDecompression([compressionGzip, compressionBrotli]),
    }),
    // No decompression for unauthenticated callers.
    ...mount(unauthenticatedImplementations, pipelines.unauthenticated, unauthenticatedBodyLimit, {
      acceptCompression: [],
    }),
  ]);
}

/** Converts a request for the library. Fails if the URL is invalid. */
function toUniversal(exchange: Exchange, { isOneMessage, bodyLimit }: LibraryMethod) {
  const { request, response } = exchange.native();
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
    if (parseTimeout(exchange.headers) === undefined) {
      // The library would set a timer with a delay that timers do not support.
      universal.header.delete("grpc-timeout");
      universal.header.delete("connect-timeout-ms");
    }
    hideInvalidContentType(universal.header);
    // The rest of a refused body is discarded by the exchange.
    const parts = request.iterator({ destroyOnReturn: false });
    const body = limitBodyMemory(parts, exchange, bodyLimit);
    const mayBeSlow = !isOneMessage && exchange instanceof Http2Exchange;
    return { ...universal, body: mayBeSlow ? abortSlowMessages(body, exchange) : body };
  } catch {
    throw invalidRequest({ field: "host", message: "is missing or is not a valid host" });
  }
}

/** Matches every content type that the library supports. */
const contentTypePattern = /^application\/[a-z-]+(\+[a-z]+)?(; ?charset=[a-z\d-]+)?$/i;

/** The library caches unknown content types, and an invalid one may be a key or very long. */
function hideInvalidContentType(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== null && !contentTypePattern.test(type)) {
    headers.set("content-type", "unknown");
  }
}

/** gRPC clients need a gRPC status if a method does not exist. */
function refuseUnknownMethod(exchange: Exchange, redactKeys: RedactKeys): Handled | undefined {
  const { headers, path } = exchange;
  if (!isGrpcType(headers)) {
    return undefined;
  }
  const type = headers["content-type"] ?? "";
  const message = encodeMessage(`unknown method ${redactKeys(path)}`);
  exchange.problemCode = "unimplemented";
  exchange.send(200, ["content-type", type, "grpc-status", "12", grpcMessage, message]);
  return unlogged;
}
