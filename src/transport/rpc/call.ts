import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type {
  ContextKey,
  ContextValues,
  HandlerContext,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { type Call, callKey, type ProtocolName } from "../../auth/caller.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import { chain, type Interceptor, type NextUnary } from "../../middleware/interceptor.js";
import type { Exchange } from "../http/exchange.js";
import { type HeaderList, HeadersView } from "../http/headers.js";
import type { UnaryHandler } from "./implementation.js";

const none: HeaderList = [];

/** What interceptors see of a call beside its messages. What few of them ask for is made when they do. */
export abstract class CallRequest<M extends DescMethod = DescMethod> {
  readonly contextValues: ContextValues;
  private requestHeader: Headers | undefined;
  private answerHeader: Headers | undefined;
  private answerTrailer: Headers | undefined;

  constructor(
    readonly method: M,
    readonly exchange: Exchange,
    readonly protocolName: ProtocolName,
  ) {
    exchange.call.protocol = protocolName;
    this.contextValues = new CallValues(exchange.call);
  }

  get service(): DescService {
    return this.method.parent;
  }

  get header(): Headers {
    this.requestHeader ??= new HeadersView(this.exchange.headers);
    return this.requestHeader;
  }

  get signal(): AbortSignal {
    return this.exchange.call.cancellation.signal;
  }

  get requestMethod(): string {
    return this.exchange.method;
  }

  get url(): string {
    return this.exchange.url;
  }

  get responseHeader(): Headers {
    this.answerHeader ??= new Headers();
    return this.answerHeader;
  }

  get responseTrailer(): Headers {
    this.answerTrailer ??= new Headers();
    return this.answerTrailer;
  }

  /** The headers that the handler set for its answer, or its error. */
  get headerList(): HeaderList {
    return this.answerHeader ? listOf(this.answerHeader) : none;
  }

  get trailerList(): HeaderList {
    return this.answerTrailer ? listOf(this.answerTrailer) : none;
  }
}

export function listOf(headers: Headers): HeaderList {
  return [...headers].flat();
}

/** The values of a call, of which the call itself is the one that everybody asks for. */
class CallValues implements ContextValues {
  private others: Map<symbol, unknown> | undefined;

  constructor(private readonly call: Call) {}

  get<T>(key: ContextKey<T>): T {
    if ((key as ContextKey<unknown>) === callKey) {
      return this.call as T;
    }
    return this.others?.has(key.id) ? (this.others.get(key.id) as T) : key.defaultValue;
  }

  set<T>(key: ContextKey<T>, value: T): this {
    this.others ??= new Map();
    this.others.set(key.id, value);
    return this;
  }

  delete(key: ContextKey<unknown>): this {
    this.others?.delete(key.id);
    return this;
  }
}

/** A call as its handler sees it. */
export class CallContext implements HandlerContext {
  constructor(private readonly call: CallRequest) {}

  get method() {
    return this.call.method;
  }

  get service() {
    return this.call.service;
  }

  get signal() {
    return this.call.signal;
  }

  timeoutMs() {
    return this.call.exchange.call.cancellation.timeLeft;
  }

  get requestMethod() {
    return this.call.requestMethod;
  }

  get requestHeader() {
    return this.call.header;
  }

  get responseHeader() {
    return this.call.responseHeader;
  }

  get responseTrailer() {
    return this.call.responseTrailer;
  }

  get protocolName() {
    return this.call.protocolName;
  }

  get values() {
    return this.call.contextValues;
  }

  get url() {
    return this.call.url;
  }
}

/** What interceptors see of an answer beside its messages. */
export abstract class CallAnswer<M extends DescMethod = DescMethod> {
  constructor(private readonly call: CallRequest<M>) {}

  get method() {
    return this.call.method;
  }

  get service() {
    return this.call.service;
  }

  get header() {
    return this.call.responseHeader;
  }

  get trailer() {
    return this.call.responseTrailer;
  }
}

/** Gets the message of a call, which may not have arrived yet. */
type Receive = () => MaybePromise<Message>;

/** Answers a call, or throws what its caller may see. */
type RunCall = (call: UnaryCallRequest) => MaybePromise<UnaryResponse>;

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
    const message = handler(call.message, new CallContext(call)) as MaybePromise<Message>;
    return mapMaybePromise(message, (message) => new UnaryCallAnswer(call, message));
  };
  return chain([...before, receiveMessage, ...after], answer);
}

const receiveMessage: Interceptor = (next) => (request) => {
  const call = request as UnaryCallRequest;
  return mapMaybePromise(call.receive(), (message) => {
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
