import type { DescMethodStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import { Problem, toProblem } from "../../../errors.js";
import type { MaybePromise } from "../../../lib/async.js";
import {
  chain,
  type Interceptor,
  type NextStream,
  type NextUnary,
} from "../../../middleware/interceptor.js";
import { type Exchange, type Handled, handled, type RequestHandler } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { CallContext, CallRequest, CallResponse, UnaryCallRequest } from "../call.js";
import type { MountedMethod } from "../methods.js";
import { type RpcOptions, type StreamHandler, streamHandler } from "../methods.js";
import { okStatus, statusTrailers } from "../protocols/grpc.js";
import {
  isFastPath,
  isGrpc,
  missingMessage,
  startTimeout,
  tooManyMessages,
} from "../protocols/protocol.js";
import { RequestStream } from "./request-stream.js";
import { ResponseStream } from "./response-stream.js";

type HandleStream = (exchange: Http2Exchange) => Promise<Handled>;

/** The fast path for gRPC streams without compression. */
export function createStreamHandler(
  options: RpcOptions,
  methods: readonly MountedMethod[],
): RequestHandler {
  const streams = new Map<string, HandleStream>();
  for (const mounted of methods) {
    if (mounted.method.methodKind !== "unary") {
      streams.set(mounted.path, createStreamCallHandler(options, mounted));
    }
  }
  return (exchange) => {
    const handle = streams.get(exchange.path);
    return handle && isGrpc(exchange) && isFastPath(exchange) ? handle(exchange) : undefined;
  };
}

function createStreamCallHandler(
  { interceptors, writeTimeoutMs }: RpcOptions,
  {
    implementation,
    codecs: { binary },
    admission,
    reauthorization,
    inspection,
    bodyLimit,
    ...mounted
  }: MountedMethod,
): HandleStream {
  const method = mounted.method as DescMethodStreaming;
  const isSingle = method.methodKind === "server_streaming";
  const run = createStreamCall({
    method,
    handler: streamHandler(implementation, method),
    observe: interceptors.observe,
    admission: [interceptors.deadline, ...admission],
    reauthorization: [interceptors.deadline, ...reauthorization],
    limitStreams: interceptors.limitStreams,
    inspection,
  });

  return async (exchange) => {
    const messages = new RequestStream(exchange, binary.decode, { limit: bodyLimit, isSingle });
    const call = new StreamCallRequest(method, exchange, messages);
    const output = new ResponseStream(exchange, call, writeTimeoutMs);
    startTimeout(exchange);
    try {
      const { message: responses } = await run(call);
      await sendAll(responses, exchange, (response) => output.send(binary.encode(response)));
      output.finish([...okStatus, ...call.trailerList]);
      return handled;
    } catch (reason) {
      output.finish([...call.trailerList, ...statusTrailers(toProblem(reason))]);
      if (!(reason instanceof Problem)) {
        throw reason;
      }
      return handled;
    } finally {
      exchange.call.cancellation.clearTimer();
      exchange.abortBodySoon();
    }
  };
}

/** Sends all responses until the client disconnects. */
async function sendAll(
  responses: AsyncIterable<object>,
  { stream }: Http2Exchange,
  send: (response: object) => Promise<void> | undefined,
): Promise<void> {
  const iterator = responses[Symbol.asyncIterator]();
  const stop = () => {
    iterator.return?.().catch(() => {});
  };
  stream.once("close", stop);
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      const drained = send(next.value);
      if (drained) {
        await drained;
      }
    }
  } catch (reason) {
    stop();
    throw reason;
  } finally {
    stream.removeListener("close", stop);
  }
}

interface StreamCallOptions {
  readonly method: DescMethodStreaming;
  readonly handler: StreamHandler;
  readonly observe: Interceptor;
  /** Interceptors that run when the stream is opened. */
  readonly admission: readonly Interceptor[];
  /** Interceptors that run again when the handler checks whether the stream may continue. */
  readonly reauthorization: readonly Interceptor[];
  readonly limitStreams: Interceptor;
  /** Interceptors that run on the messages. */
  readonly inspection: readonly Interceptor[];
}

/** Opens a stream. Throws only errors that the caller may see. */
type RunStream = (call: StreamCallRequest) => MaybePromise<StreamResponse>;

/** Creates a function that runs the streams of a method through its interceptors and handler. */
function createStreamCall(options: StreamCallOptions): RunStream {
  const { method, handler, observe, admission, reauthorization, limitStreams, inspection } =
    options;
  const pass: NextUnary = (request) => request as never;
  const admit = chain(admission, pass);
  const reauthorize = chain(reauthorization, pass);

  const admitFirst: Interceptor = (next) => async (request) => {
    const { exchange } = request as StreamCallRequest;
    // The admission interceptors see the stream as a unary call without a message.
    const opening = new UnaryCallRequest(
      method as never as DescMethodUnary,
      exchange,
      "grpc",
      noMessage,
    );
    exchange.call.reauthorize = async () => {
      await reauthorize(opening);
    };
    await admit(opening);
    return next(request);
  };

  const callHandler: NextStream = async (request) => {
    const call = request as StreamCallRequest;
    const context = new CallContext(call);
    const input = method.methodKind === "server_streaming" ? await onlyMessage(call) : call.message;
    const output = handler(input, context);
    return new StreamCallResponse(call, Symbol.asyncIterator in output ? output : once(output));
  };

  return chain([observe, admitFirst, limitStreams, ...inspection], callHandler);
}

const noMessage = () => Promise.reject(new Error("the opening of a stream has no message"));

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

class StreamCallResponse extends CallResponse<DescMethodStreaming> implements StreamResponse {
  readonly stream = true;
  readonly message: AsyncIterable<Message>;

  constructor(call: StreamCallRequest, message: AsyncIterable<object>) {
    super(call);
    this.message = message as AsyncIterable<Message>;
  }
}

/** The only message of a stream. Rejects if the stream is canceled before it arrives. */
function onlyMessage({ message, signal }: StreamCallRequest): Promise<Message> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    single(message).then(resolve, reject);
  });
}

async function single(messages: AsyncIterable<Message>): Promise<Message> {
  let only: Message | undefined;
  for await (const message of messages) {
    if (only) {
      throw tooManyMessages();
    }
    only = message;
  }
  if (!only) {
    throw missingMessage();
  }
  return only;
}

async function* once(message: Promise<object>): AsyncGenerator<object> {
  yield await message;
}
