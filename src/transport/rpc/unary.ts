import type { DescMethodUnary } from "@bufbuild/protobuf";
import type { UnaryResponse } from "@connectrpc/connect";
import { Problem, toProblem, unreadable } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import type { Exchange } from "../http/exchange.js";
import { type Door, type Served, served } from "../http/exchange.js";
import { createUnaryCall, UnaryCallRequest } from "./call.js";
import { isGrpc, isUsual, limitTime } from "./fast-path.js";
import { type RpcOptions, unaryHandler } from "./implementation.js";
import type { MountedMethod } from "./methods.js";
import { connectBinary, connectJson } from "./protocols/connect.js";
import { grpc } from "./protocols/grpc.js";
import { grpcWeb } from "./protocols/grpc-web.js";
import type { Protocol } from "./protocols/protocol.js";

/** Serves a call of one method. */
type ServeCall = (exchange: Exchange, protocol: Protocol) => MaybePromise<Served>;

/**
 * Serves unary calls of gRPC, gRPC-Web and Connect, as they mostly are: one
 * whole message each way, not compressed. Takes nothing else.
 */
export function createUnaryRpc(options: RpcOptions, methods: readonly MountedMethod[]): Door {
  const calls = new Map<string, ServeCall>();
  for (const mounted of methods) {
    if (mounted.method.methodKind === "unary") {
      calls.set(mounted.path, createServe(options, mounted));
    }
  }
  return (exchange) => {
    const serve = calls.get(exchange.path);
    const protocol = serve && protocolOf(exchange);
    return protocol && serve(exchange, protocol);
  };
}

function createServe({ interceptors }: RpcOptions, mounted: MountedMethod): ServeCall {
  const { codecs, implementation, admission, inspection, bodyLimit } = mounted;
  const method = mounted.method as DescMethodUnary;
  const run = createUnaryCall({
    handler: unaryHandler(implementation, method),
    before: [interceptors.observe, interceptors.deadline, ...admission],
    after: inspection,
  });

  return (exchange, protocol) => {
    const codec = codecs[protocol.format];
    const decode = (body: Buffer) => {
      try {
        return codec.decode(protocol.unwrap(body, bodyLimit));
      } catch (reason) {
        throw unreadable(reason, bodyLimit);
      }
    };
    const receive = () => mapMaybePromise(exchange.readBody(bodyLimit + protocol.overhead), decode);
    const call = new UnaryCallRequest(method, exchange, protocol.name, receive);

    const answer = ({ message }: UnaryResponse) => {
      exchange.call.cancellation.clearTimer();
      protocol.answer(exchange, call, codec, message);
      return served;
    };
    const refuse = (reason: unknown) => {
      exchange.call.cancellation.clearTimer();
      protocol.refuse(exchange, call, toProblem(reason));
      if (!(reason instanceof Problem)) {
        throw reason;
      }
      return served;
    };

    limitTime(exchange);
    try {
      const response = run(call);
      return response instanceof Promise ? response.then(answer).catch(refuse) : answer(response);
    } catch (reason) {
      return refuse(reason);
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

/** The protocol that a request follows, unless it makes use of more than the usual. */
function protocolOf(exchange: Exchange): Protocol | undefined {
  if (!isUsual(exchange)) {
    return undefined;
  }
  return isGrpc(exchange)
    ? (grpc as Protocol)
    : protocols.get(exchange.headers["content-type"] ?? "");
}
