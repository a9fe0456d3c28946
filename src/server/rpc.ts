import { createConnectRouter, createContextValues } from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { callKey } from "../caller.js";
import { invalidRequest, methodNotAllowed, Problem } from "../errors.js";
import { reasonOf } from "../interceptors/deadline.js";
import { forConnect, type Interceptor } from "../interceptors/interceptor.js";
import { deliverStream, dropBodyWhenAnswered } from "./deliver-stream.js";
import { type Door, type Served, served } from "./door.js";
import type { Exchange } from "./exchange.js";
import { encodeMessage, grpcMessage, withReadableMessage } from "./grpc-message.js";
import type { JsonOptions } from "./json-options.js";
import { unsupportedMediaType } from "./refusal.js";
import { createRpcCall, type RpcCall } from "./rpc-call.js";
import type { RpcOptions } from "./rpc-doors.js";
import { sendWhole } from "./send-whole.js";

/**
 * Serves gRPC, gRPC-Web and Connect by the library of the protocol: streams,
 * and unary calls that are out of the ordinary. Takes nothing else.
 */
export function createRpc(options: RpcOptions, jsonOptions: JsonOptions): Door {
  const calls = createCalls(options, jsonOptions);

  async function serve(call: RpcCall, exchange: Exchange): Promise<Served> {
    if (!call.handler.allowedMethods.includes(exchange.method)) {
      throw methodNotAllowed(call.handler.allowedMethods);
    }
    const { response } = exchange.native();
    const answer = await call.serve(exchange, toUniversal(exchange));
    if (answer.status === unsupportedMediaType) {
      throw new Problem(
        "unsupported_media_type",
        "Send a message of gRPC, gRPC-Web or Connect, or see /openapi.json for the paths of REST.",
      );
    }
    if (call.handler.method.methodKind === "unary" || exchange.call.refusal) {
      exchange.dropBody();
      await sendWhole(exchange, withReadableMessage(answer));
      return served;
    }
    dropBodyWhenAnswered(exchange);
    const delivered = deliverStream(response, answer, options.patience);
    await universalResponseToNodeResponse(withReadableMessage(delivered), response);
    return served;
  }

  return (exchange) => {
    const call = calls.get(exchange.path);
    return call ? serve(call, exchange) : refuseGrpc(exchange);
  };
}

/** The library opens a stream before it reads its body, so that no error in there would refuse it. */
const refuseFirst: Interceptor = (next) => (request) => {
  const { refusal } = request.contextValues.get(callKey);
  if (refusal) {
    throw refusal;
  }
  return next(request);
};

/** The library tells by a signal of its own that a call is given up. */
const endWithSignal: Interceptor = (next) => (request) => {
  const { signal, stream, contextValues } = request;
  if (!stream) {
    const { ending } = contextValues.get(callKey);
    signal.addEventListener("abort", () => ending.end(reasonOf(signal)), { once: true });
  }
  return next(request);
};

/** The calls that are served, by their paths. */
function createCalls(options: RpcOptions, jsonOptions: JsonOptions): ReadonlyMap<string, RpcCall> {
  const { interceptors, bodyLimit } = options;
  const { observe, deadline, readStream, admission, inspection } = interceptors;
  const router = createConnectRouter({
    readMaxBytes: bodyLimit,
    acceptCompression: [compressionGzip, compressionBrotli],
    jsonOptions,
  });
  for (const { service, handlers } of options.implementations) {
    router.service(service, handlers, {
      interceptors: [
        ...[refuseFirst, endWithSignal, observe, deadline, readStream],
        ...inspection,
      ].map(forConnect),
    });
  }
  for (const { service, handlers } of options.openImplementations) {
    router.service(service, handlers, {
      interceptors: [endWithSignal, observe, deadline, readStream].map(forConnect),
    });
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
function toUniversal(exchange: Exchange) {
  const { request, response } = exchange.native();
  try {
    const { call } = exchange;
    const values = createContextValues().set(callKey, call);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    // What is not read of a refused body is dropped by us.
    return { ...universal, body: request.iterator({ destroyOnReturn: false }) };
  } catch {
    throw invalidRequest({ field: "host", message: "is missing or is not a valid host" });
  }
}

/** A gRPC client must be told in its own terms that there is no such method. */
function refuseGrpc(exchange: Exchange): Served | undefined {
  const { headers, path } = exchange;
  const type = headers["content-type"] ?? "";
  if (!/^application\/grpc(?!-web)/.test(type)) {
    return undefined;
  }
  const message = encodeMessage(`there is no method ${path}`);
  exchange.send(200, ["content-type", type, "grpc-status", "12", grpcMessage, message]);
  return served;
}
