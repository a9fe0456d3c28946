import type { DescMethodStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import type { Awaitable } from "../../awaitable.js";
import { chain, type NextUnary, type NextStream } from "../../interceptors/chain.js";
import type { Interceptor } from "../../interceptors/interceptor.js";
import { CallAnswer, CallContext, CallRequest } from "../call-request.js";
import type { Exchange } from "../exchange.js";
import type { StreamHandler } from "../implementation.js";
import { manyMessages, noMessage } from "../protocols/envelope.js";
import { UnaryCallRequest } from "../unary-call.js";

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
type RunStream = (call: StreamCallRequest) => Awaitable<StreamResponse>;

/** Creates what takes streams of a method through the interceptors to its handler. */
export function createStreamCall(options: StreamCallOptions): RunStream {
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
export class StreamCallRequest extends CallRequest<DescMethodStreaming> implements StreamRequest {
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
