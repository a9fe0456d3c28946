import { createConnectRouter, createContextValues, type Interceptor } from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { callKey } from "../caller.js";
import { invalidRequest, methodNotAllowed, Problem } from "../errors.js";
import type { Interceptors } from "../interceptors/interceptors.js";
import { deliverStream } from "./deliver-stream.js";
import { cutOffWhenAnswered, dropBody } from "./drop-body.js";
import { encodeMessage, grpcMessage, withReadableMessage } from "./grpc-message.js";
import { type Exchange, send } from "./http.js";
import type { Implementation } from "./implementation.js";
import { unsupportedMediaType } from "./refusal.js";
import { createRpcCall, type RpcCall } from "./rpc-call.js";

const jsonOptions = {
  // A mistyped name must not be taken for a field that was left out.
  ignoreUnknownFields: false,
  // Without this bytes that are not UTF-8 would be replaced.
  textDecoder: new TextDecoder("utf-8", { fatal: true }),
  // As over REST: that something is not allowed is said, and not left out.
  alwaysEmitImplicit: true,
};

interface RpcOptions {
  readonly implementations: readonly Implementation[];
  /** Services about the server itself, which need no key. */
  readonly openImplementations: readonly Implementation[];
  readonly interceptors: Interceptors;
  readonly bodyLimit: number;
  /** Milliseconds that the caller of a stream may take to read a part of it. */
  readonly patience: number;
}

/** Serves gRPC, gRPC-Web and Connect. Answers `false` where the request is for none of them. */
export function createRpc(options: RpcOptions): (exchange: Exchange) => Promise<boolean> {
  const calls = createCalls(options);

  return async (exchange) => {
    const call = calls.get(exchange.path);
    if (!call) {
      return refuseGrpc(exchange);
    }
    const { request, response } = exchange;
    if (!call.handler.allowedMethods.includes(request.method ?? "")) {
      throw methodNotAllowed(call.handler.allowedMethods);
    }
    const answer = await call.serve(exchange, toUniversal(exchange));
    if (answer.status === unsupportedMediaType) {
      throw new Problem(
        "unsupported_media_type",
        "Send a message of gRPC, gRPC-Web or Connect, or see /openapi.json for the paths of REST.",
      );
    }
    let delivered = answer;
    if (call.handler.method.methodKind === "unary") {
      dropBody(request);
    } else {
      cutOffWhenAnswered(exchange);
      delivered = deliverStream(exchange, answer, options.patience);
    }
    await universalResponseToNodeResponse(withReadableMessage(delivered), response);
    return true;
  };
}

/** The library opens a stream before it reads its body, so that no error in there would refuse it. */
const refuseFirst: Interceptor = (next) => (request) => {
  const { refusal } = request.contextValues.get(callKey);
  return refusal ? Promise.reject(refusal) : next(request);
};

/** The calls that are served, by their paths. */
function createCalls(options: RpcOptions): ReadonlyMap<string, RpcCall> {
  const { interceptors, bodyLimit } = options;
  const { observe, deadline, admission, inspection, open } = interceptors;
  const router = createConnectRouter({
    readMaxBytes: bodyLimit,
    acceptCompression: [compressionGzip, compressionBrotli],
    jsonOptions,
  });
  for (const { service, handlers } of options.implementations) {
    router.service(service, handlers, {
      interceptors: [refuseFirst, observe, deadline, ...inspection],
    });
  }
  for (const { service, handlers } of options.openImplementations) {
    router.service(service, handlers, { interceptors: [observe, ...open] });
  }
  const openServices = new Set(options.openImplementations.map(({ service }) => service));
  return new Map(
    router.handlers.map((handler) => {
      const needed = openServices.has(handler.service) ? [] : [deadline, ...admission];
      const call = createRpcCall({ handler, observe, admission: needed, bodyLimit });
      return [handler.requestPath, call];
    }),
  );
}

/** The address of a request is the caller's own words and may make no sense. */
function toUniversal({ request, response, call }: Exchange) {
  try {
    const values = createContextValues().set(callKey, call);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    // What is not read of a refused body is dropped by us.
    return { ...universal, body: request.iterator({ destroyOnReturn: false }) };
  } catch {
    throw invalidRequest({ field: "host", message: "is missing or is not a valid host" });
  }
}

/** A gRPC client must be told in its own terms that there is no such method. */
function refuseGrpc(exchange: Exchange): boolean {
  const type = exchange.request.headers["content-type"] ?? "";
  if (!/^application\/grpc(?!-web)/.test(type)) {
    return false;
  }
  send(exchange, 200, {
    "content-type": type,
    "grpc-status": 12,
    [grpcMessage]: encodeMessage(`there is no method ${exchange.path}`),
  });
  return true;
}
