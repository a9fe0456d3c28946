import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { Problem, toProblem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { type Exchange, type Handled, handledCall, type RequestHandler } from "../http/exchange.js";
import { callHandler, ServerCall } from "./call.js";
import type { MountedMethod } from "./methods.js";
import { unaryHandler } from "./methods.js";
import { connectBinary, connectJson } from "./protocols/connect.js";
import { grpc, grpcWeb } from "./protocols/grpc.js";
import {
  isFastPath,
  isGrpc,
  type Protocol,
  startTimeout,
  toDecodeProblem,
} from "./protocols/protocol.js";

/** Handles a call of one method. */
type HandleCall = (exchange: Exchange, protocol: Protocol) => MaybePromise<Handled>;

/** The fast path for unary calls of gRPC, gRPC-Web and Connect without compression. */
export function createUnaryHandler(methods: readonly MountedMethod[]): RequestHandler {
  const calls = new Map<string, HandleCall>();
  for (const mounted of methods) {
    if (mounted.method.methodKind === "unary") {
      calls.set(mounted.path, createCallHandler(mounted));
    }
  }
  return (exchange) => {
    const handle = calls.get(exchange.path);
    const protocol = handle && protocolOf(exchange);
    return protocol && handle(exchange, protocol);
  };
}

function createCallHandler(mounted: MountedMethod): HandleCall {
  const { codecs, implementation, pipeline, bodyLimit } = mounted;
  const method = mounted.method as DescMethodUnary;
  const handler = unaryHandler(implementation, method);

  return (exchange, protocol) => {
    const codec = codecs[protocol.format];
    const decode = (body: Buffer) => {
      try {
        return codec.decode(protocol.unwrap(body, bodyLimit));
      } catch (reason) {
        throw toDecodeProblem(reason, bodyLimit);
      }
    };
    const receive = () => mapMaybePromise(exchange.readBody(bodyLimit + protocol.overhead), decode);
    const call = new ServerCall(method, exchange, protocol.name);
    const handle = (message: Message, values: ContextValues) =>
      callHandler(handler, call, message, values);

    const respond = (message: Message) => {
      exchange.cancellation.clearTimer();
      protocol.respond(exchange, call, codec, message);
      return handledCall;
    };
    const respondWithError = (reason: unknown) => {
      exchange.cancellation.clearTimer();
      protocol.respondWithError(exchange, call, toProblem(reason));
      if (!(reason instanceof Problem)) {
        throw reason;
      }
      return handledCall;
    };

    startTimeout(exchange);
    try {
      const response = pipeline.unary(call, receive, handle);
      return response instanceof Promise
        ? response.then(respond).catch(respondWithError)
        : respond(response);
    } catch (reason) {
      return respondWithError(reason);
    }
  };
}

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ["application/grpc-web", grpcWeb],
  ["application/grpc-web+proto", grpcWeb],
  ["application/proto", connectBinary],
  ["application/json", connectJson],
  ["application/json; charset=utf-8", connectJson],
  ["application/json;charset=utf-8", connectJson],
]);

/** The protocol of a request, if the fast path supports it. */
function protocolOf(exchange: Exchange): Protocol | undefined {
  if (!isFastPath(exchange)) {
    return undefined;
  }
  return isGrpc(exchange)
    ? (grpc as Protocol)
    : protocols.get(exchange.headers["content-type"] ?? "");
}
