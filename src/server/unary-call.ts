import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import {
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type UnaryRequest,
} from "@connectrpc/connect";
import { type Call, callKey } from "../caller.js";
import { chain, type Next } from "./chain.js";
import type { UnaryHandler } from "./implementation.js";

/** Gets the message of a call, which may not have arrived yet. */
type Receive = () => Promise<Message>;

interface UnaryCallOptions {
  readonly method: DescMethodUnary;
  readonly handler: UnaryHandler;
  /** Run before the message is received, so that a caller can be refused without it. */
  readonly before: readonly Interceptor[];
  /** Run on the message. */
  readonly after: readonly Interceptor[];
}

interface UnaryCallInit {
  readonly call: Call;
  readonly header: Headers;
  readonly signal: AbortSignal;
  readonly requestMethod: string;
  readonly url: string;
  readonly receive: Receive;
}

interface UnaryAnswer {
  readonly message: unknown;
  readonly header: Headers;
}

const receiveKey = createContextKey<Receive>(() => Promise.reject(new Error("nothing to receive")));

const receiveMessage: Interceptor = (next) => async (request) => {
  const message = await request.contextValues.get(receiveKey)();
  return next({ ...request, message } as UnaryRequest);
};

/** Creates a function that takes one call through the interceptors to its handler. */
export function createUnaryCall(
  options: UnaryCallOptions,
): (init: UnaryCallInit) => Promise<UnaryAnswer> {
  const { method, handler, before, after } = options;
  const service = method.parent;

  const answer: Next = async (request) => {
    const responseHeader = new Headers();
    const responseTrailer = new Headers();
    const context: HandlerContext = {
      method,
      service,
      signal: request.signal,
      timeoutMs: () => undefined,
      requestMethod: request.requestMethod,
      requestHeader: request.header,
      responseHeader,
      responseTrailer,
      protocolName: "rest",
      values: request.contextValues,
      url: request.url,
    };
    const message = (await handler(request.message, context)) as Message;
    return {
      stream: false,
      method,
      service,
      message,
      header: responseHeader,
      trailer: responseTrailer,
    };
  };

  const run = chain([...before, receiveMessage, ...after], answer);

  return ({ call, receive, ...common }) => {
    const contextValues = createContextValues().set(callKey, call).set(receiveKey, receive);
    const pending = {} as Message; // Replaced when it is received.
    return run({ ...common, stream: false, method, service, message: pending, contextValues });
  };
}
