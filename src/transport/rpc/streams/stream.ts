import type { DescMethodStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import { Problem, toProblem } from "../../../errors.js";
import type { MaybePromise } from "../../../lib/maybe-promise.js";
import {
  chain,
  type Interceptor,
  type NextStream,
  type NextUnary,
} from "../../../middleware/interceptor.js";
import { type Door, type Exchange, type Served, served } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { CallAnswer, CallContext, CallRequest, UnaryCallRequest } from "../call.js";
import { isGrpc, isUsual, limitTime } from "../fast-path.js";
import { type RpcOptions, type StreamHandler, streamHandler } from "../implementation.js";
import type { MountedMethod } from "../methods.js";
import { ok, statusTrailers } from "../protocols/grpc.js";
import { manyMessages, noMessage } from "../protocols/protocol.js";
import { MessageSource } from "./request-stream.js";
import { AnswerSink } from "./response-stream.js";

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
      exchange.call.cancellation.clearTimer();
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

interface StreamCallOptions {
  readonly method: DescMethodStreaming;
  readonly handler: StreamHandler;
  readonly observe: Interceptor;
  /** Run when the stream is opened. */
  readonly admission: readonly Interceptor[];
  /** Run whenever its handler wants to know whether it may go on. */
  readonly readmission: readonly Interceptor[];
  readonly limitStreams: Interceptor;
  /** Run on the messages. */
  readonly inspection: readonly Interceptor[];
}

/** Opens a stream, or throws what its caller may see. */
type RunStream = (call: StreamCallRequest) => MaybePromise<StreamResponse>;

/** Creates what takes streams of a method through the interceptors to its handler. */
function createStreamCall(options: StreamCallOptions): RunStream {
  const { method, handler, observe, admission, readmission, limitStreams, inspection } = options;
  const pass: NextUnary = (request) => request as never;
  const admit = chain(admission, pass);
  const admitAgain = chain(readmission, pass);

  const admitFirst: Interceptor = (next) => async (request) => {
    const { exchange } = request as StreamCallRequest;
    // To those who admit it, it is one call, which is over when they are done.
    const asked = new UnaryCallRequest(method as never as DescMethodUnary, exchange, "grpc", never);
    const readmit = async () => {
      await admitAgain(asked);
    };
    exchange.call.readmit = readmit;
    await admit(asked);
    return next(request);
  };

  const answer: NextStream = async (request) => {
    const call = request as StreamCallRequest;
    const context = new CallContext(call);
    const input = method.methodKind === "server_streaming" ? await only(call) : call.message;
    const output = handler(input, context);
    return new StreamCallAnswer(call, Symbol.asyncIterator in output ? output : once(output));
  };

  return chain([observe, admitFirst, limitStreams, ...inspection], answer);
}

const never = () => Promise.reject(new Error("a stream has no message of its own"));

/** A stream as interceptors see it. */
class StreamCallRequest extends CallRequest<DescMethodStreaming> implements StreamRequest {
  readonly stream = true;

  constructor(
    method: DescMethodStreaming,
    exchange: Exchange,
    readonly message: AsyncIterable<Message>,
  ) {
    super(method, exchange, "grpc");
  }
}

class StreamCallAnswer extends CallAnswer<DescMethodStreaming> implements StreamResponse {
  readonly stream = true;
  readonly message: AsyncIterable<Message>;

  constructor(call: StreamCallRequest, message: AsyncIterable<object>) {
    super(call);
    this.message = message as AsyncIterable<Message>;
  }
}

/** The only message of a stream, unless that is given up before it has arrived. */
function only({ message, signal }: StreamCallRequest): Promise<Message> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    single(message).then(resolve, reject);
  });
}

async function single(messages: AsyncIterable<Message>): Promise<Message> {
  let only: Message | undefined;
  for await (const message of messages) {
    if (only) {
      throw manyMessages();
    }
    only = message;
  }
  if (!only) {
    throw noMessage();
  }
  return only;
}

async function* once(message: Promise<object>): AsyncGenerator<object> {
  yield await message;
}
