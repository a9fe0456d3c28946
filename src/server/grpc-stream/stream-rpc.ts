import type { DescMethodStreaming } from "@bufbuild/protobuf";
import { Problem, toProblem } from "../../errors.js";
import { limitTime } from "../call-timeout.js";
import { type Door, type Served, served } from "../door.js";
import type { Http2Exchange } from "../http2-exchange.js";
import { streamHandler } from "../implementation.js";
import type { MountedMethod } from "../mounted-method.js";
import { ok, statusTrailers } from "../protocols/grpc.js";
import type { RpcOptions } from "../rpc-doors.js";
import { isGrpc, isUsual } from "../usual.js";
import { AnswerSink } from "./answer-sink.js";
import { MessageSource } from "./message-source.js";
import { createStreamCall, StreamCallRequest } from "./stream-call.js";

type ServeStream = (exchange: Http2Exchange) => Promise<Served>;

/** Serves the streams of gRPC whose messages are not compressed. Takes nothing else. */
export function createStreamRpc(options: RpcOptions, methods: readonly MountedMethod[]): Door {
  const streams = new Map<string, ServeStream>();
  for (const mounted of methods) {
    if (mounted.method.methodKind !== "unary") {
      streams.set(mounted.path, createServe(options, mounted));
    }
  }
  return (exchange) => {
    const serve = streams.get(exchange.path);
    return serve && isGrpc(exchange) && isUsual(exchange) ? serve(exchange) : undefined;
  };
}

function createServe(
  { interceptors, patience }: RpcOptions,
  {
    implementation,
    codecs: { binary },
    admission,
    readmission,
    inspection,
    bodyLimit,
    ...mounted
  }: MountedMethod,
): ServeStream {
  const method = mounted.method as DescMethodStreaming;
  const isSingle = method.methodKind === "server_streaming";
  const run = createStreamCall({
    method,
    handler: streamHandler(implementation, method),
    observe: interceptors.observe,
    admission: [interceptors.deadline, ...admission],
    readmission: [interceptors.deadline, ...readmission],
    limitStreams: interceptors.limitStreams,
    inspection,
  });

  return async (exchange) => {
    const messages = new MessageSource(exchange, binary.decode, { limit: bodyLimit, isSingle });
    const call = new StreamCallRequest(method, exchange, messages);
    const sink = new AnswerSink(exchange, call, patience);
    limitTime(exchange);
    try {
      const { message: answers } = await run(call);
      await deliver(answers, exchange, (answer) => sink.send(binary.encode(answer)));
      sink.finish([...ok, ...call.trailerList]);
      return served;
    } catch (reason) {
      sink.finish([...call.trailerList, ...statusTrailers(toProblem(reason))]);
      if (!(reason instanceof Problem)) {
        throw reason;
      }
      return served;
    } finally {
      exchange.call.ending.callOff();
      exchange.cutOffBodySoon();
    }
  };
}

/** Sends all answers, for as long as there is someone to send them to. */
async function deliver(
  answers: AsyncIterable<object>,
  { stream }: Http2Exchange,
  send: (answer: object) => Promise<void> | undefined,
): Promise<void> {
  const source = answers[Symbol.asyncIterator]();
  const leave = () => {
    source.return?.().catch(() => {});
  };
  stream.once("close", leave);
  try {
    for (let next = await source.next(); !next.done; next = await source.next()) {
      const taken = send(next.value);
      if (taken) {
        await taken;
      }
    }
  } catch (reason) {
    leave();
    throw reason;
  } finally {
    stream.removeListener("close", leave);
  }
}
