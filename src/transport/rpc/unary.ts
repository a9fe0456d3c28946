import type { DescMethodUnary } from "@bufbuild/protobuf";
import { toProblem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { memoize } from "../../lib/cache.js";
import type { Exchange, Handled, RequestHandler } from "../http/exchange.js";
import { type ResponseWriter, runUnaryCall, ServerCall } from "./call.js";
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
    const protocol = handle && isFastPath(exchange) ? protocolByType(exchange) : undefined;
    return handle && protocol && handle(exchange, protocol);
  };
}

function createCallHandler(mounted: MountedMethod): HandleCall {
  const { codecs, implementation, pipeline, bodyLimit } = mounted;
  const method = mounted.method as DescMethodUnary;
  const handler = unaryHandler(implementation, method);

  const forProtocol = memoize((protocol: Protocol) => {
    const codec = codecs[protocol.format];
    const writer: ResponseWriter = {
      send(call, message) {
        call.cancellation.clearTimer();
        protocol.respond(call.exchange, call, codec, message);
      },
      sendError(call, reason) {
        call.cancellation.clearTimer();
        protocol.respondWithError(call.exchange, call, toProblem(reason));
      },
    };
    const decode = (body: Buffer) => {
      try {
        return codec.decode(protocol.unwrap(body, bodyLimit));
      } catch (reason) {
        throw toDecodeProblem(reason, bodyLimit);
      }
    };
    return { pipeline, handler, writer, decode };
  });

  return (exchange, protocol) => {
    const unary = forProtocol(protocol);
    const call = new ServerCall(method, exchange, protocol.name);
    startTimeout(exchange);
    return runUnaryCall(unary, call, () =>
      mapMaybePromise(exchange.readBody(bodyLimit + protocol.overhead), unary.decode),
    );
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

/** The protocol of a request by its content type, if the fast path supports that. */
export function protocolByType(exchange: Exchange): Protocol | undefined {
  return isGrpc(exchange)
    ? (grpc as Protocol)
    : protocols.get(exchange.headers["content-type"] ?? "");
}
