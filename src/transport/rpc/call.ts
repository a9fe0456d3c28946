import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type {
  ContextKey,
  ContextValues,
  HandlerContext,
  MethodImpl,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import { type Call, callKey, type ProtocolName } from "../../auth/caller.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { chain, type Interceptor, type NextUnary } from "../../middleware/interceptor.js";
import type { Exchange } from "../http/exchange.js";
import { type HeaderList, HeadersView } from "../http/headers.js";

const noHeaders: HeaderList = [];

/** A call as interceptors see it, without its messages. Rarely used parts are created on demand. */
export abstract class CallRequest<M extends DescMethod = DescMethod> {
  readonly contextValues: ContextValues;
  private lazyHeader: Headers | undefined;
  private lazyResponseHeader: Headers | undefined;
  private lazyResponseTrailer: Headers | undefined;

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
    this.lazyHeader ??= new HeadersView(this.exchange.headers);
    return this.lazyHeader;
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
    this.lazyResponseHeader ??= new Headers();
    return this.lazyResponseHeader;
  }

  get responseTrailer(): Headers {
    this.lazyResponseTrailer ??= new Headers();
    return this.lazyResponseTrailer;
  }

  /** The headers that the handler set for its response or error. */
  get headerList(): HeaderList {
    return this.lazyResponseHeader ? toHeaderList(this.lazyResponseHeader) : noHeaders;
  }

  get trailerList(): HeaderList {
    return this.lazyResponseTrailer ? toHeaderList(this.lazyResponseTrailer) : noHeaders;
  }
}

export function toHeaderList(headers: Headers): HeaderList {
  return [...headers].flat();
}

/** The context values of a call. Lookup of the call itself is the common case and needs no map. */
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

/** A response as interceptors see it, without its messages. */
export abstract class CallResponse<M extends DescMethod = DescMethod> {
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

/** Reads the message of a call, which may not have arrived yet. */
type Receive = () => MaybePromise<Message>;

/** Runs a call. Throws only errors that the caller may see. */
type RunCall = (call: UnaryCallRequest) => MaybePromise<UnaryResponse>;

export type UnaryHandler = MethodImpl<DescMethodUnary>;

interface UnaryCallOptions {
  readonly handler: UnaryHandler;
  /** Interceptors that run before the message is read. */
  readonly before: readonly Interceptor[];
  /** Interceptors that run on the message. */
  readonly after: readonly Interceptor[];
}

/** Creates a function that runs the calls of a method through its interceptors and handler. */
export function createUnaryCall({ handler, before, after }: UnaryCallOptions): RunCall {
  const callHandler: NextUnary = (request) => {
    const call = request as UnaryCallRequest;
    const message = handler(call.message, new CallContext(call)) as MaybePromise<Message>;
    return mapMaybePromise(message, (message) => new UnaryCallResponse(call, message));
  };
  return chain([...before, receiveMessage, ...after], callHandler);
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
  /** Set when it has been read. */
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

class UnaryCallResponse extends CallResponse<DescMethodUnary> implements UnaryResponse {
  readonly stream = false;

  constructor(
    call: UnaryCallRequest,
    readonly message: Message,
  ) {
    super(call);
  }
}
