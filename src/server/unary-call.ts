import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import type { UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { type Awaitable, whenThere } from "../awaitable.js";
import type { ProtocolName } from "../caller.js";
import { chain, type NextUnary } from "../interceptors/chain.js";
import type { Interceptor } from "../interceptors/interceptor.js";
import { CallAnswer, CallContext, CallRequest } from "./call-request.js";
import type { Exchange } from "./exchange.js";
import type { UnaryHandler } from "./implementation.js";

/** Gets the message of a call, which may not have arrived yet. */
type Receive = () => Awaitable<Message>;

/** Answers a call, or throws what its caller may see. */
type RunCall = (call: UnaryCallRequest) => Awaitable<UnaryResponse>;

interface UnaryCallOptions {
  readonly handler: UnaryHandler;
  /** Run before the message is received, so that a caller can be refused without it. */
  readonly before: readonly Interceptor[];
  /** Run on the message. */
  readonly after: readonly Interceptor[];
}

/** Creates what takes calls of a method through the interceptors to its handler. */
export function createUnaryCall({ handler, before, after }: UnaryCallOptions): RunCall {
  const answer: NextUnary = (request) => {
    const call = request as UnaryCallRequest;
    const message = handler(call.message, new CallContext(call)) as Awaitable<Message>;
    return whenThere(message, (message) => new UnaryCallAnswer(call, message));
  };
  return chain([...before, receiveMessage, ...after], answer);
}

const receiveMessage: Interceptor = (next) => (request) => {
  const call = request as UnaryCallRequest;
  return whenThere(call.receive(), (message) => {
    call.message = message;
    return next(call);
  });
};

/** A unary call as interceptors see it. */
export class UnaryCallRequest extends CallRequest<DescMethodUnary> implements UnaryRequest {
  readonly stream = false;
  /** Set when it is received. */
  message = undefined as unknown as Message;

  constructor(
    method: DescMethodUnary,
    exchange: Exchange,
    protocolName: ProtocolName,
    readonly receive: Receive,
  ) {
    super(method, exchange, protocolName);
  }
}

class UnaryCallAnswer extends CallAnswer<DescMethodUnary> implements UnaryResponse {
  readonly stream = false;

  constructor(
    call: UnaryCallRequest,
    readonly message: Message,
  ) {
    super(call);
  }
}
