import type { DescMethodStreaming, Message } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { Problem, toProblem } from "../../../errors.js";
import { type Handled, logged, type RequestHandler } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { CallContext, ServerCall } from "../call.js";
import { type MountedMethod, type RpcOptions, streamHandler } from "../methods.js";
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
  { writeTimeoutMs }: RpcOptions,
  { implementation, codecs: { binary }, pipeline, bodyLimit, ...mounted }: MountedMethod,
): HandleStream {
  const method = mounted.method as DescMethodStreaming;
  const isSingle = method.methodKind === "server_streaming";
  const handler = streamHandler(implementation, method);

  /** Returns the input of the handler: the stream, or its only message. */
  async function receive(
    messages: AsyncIterable<Message>,
    call: ServerCall,
  ): Promise<AsyncIterable<Message> | Message> {
    if (!isSingle) {
      return messages;
    }
    const message = await onlyMessage(messages, call.cancellation.signal);
    await pipeline.validate(method, message);
    return message;
  }

  return async (exchange) => {
    const messages = new RequestStream(exchange, binary.decode, { limit: bodyLimit, isSingle });
    const call = new ServerCall(method, exchange, "grpc");
    const open = async (values: ContextValues): Promise<AsyncIterable<object>> => {
      const output = handler(await receive(messages, call), new CallContext(call, values));
      return Symbol.asyncIterator in output ? output : once(output);
    };
    const output = new ResponseStream(exchange, call, writeTimeoutMs);
    startTimeout(exchange);
    try {
      const responses = await pipeline.stream(call, open);
      await sendAll(responses, exchange, (response) => output.send(binary.encode(response)));
      output.finish([...okStatus, ...call.trailerList]);
      return logged;
    } catch (reason) {
      output.finish([...call.trailerList, ...statusTrailers(toProblem(reason))]);
      if (!(reason instanceof Problem)) {
        throw reason;
      }
      return logged;
    } finally {
      exchange.cancellation.clearTimer();
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

/** The only message of a stream. Rejects if the stream is canceled before it arrives. */
function onlyMessage(messages: AsyncIterable<Message>, signal: AbortSignal): Promise<Message> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    single(messages).then(resolve, reject);
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
