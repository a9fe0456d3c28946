import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { ContextValues, HandlerContext, MethodImpl } from "@connectrpc/connect";
import type { Call, DescribedLimit, Peer, ProtocolName } from "../../call.js";
import { Problem } from "../../errors.js";
import type { MaybePromise } from "../../lib/async.js";
import type { Cancellation } from "../../lib/cancellation.js";
import type { CountedResponse, ResponseOwner } from "../../lib/response-budget.js";
import type { Pipeline } from "../../middleware/pipeline.js";
import { type Exchange, type Handled, logged } from "../http/exchange.js";
import { type HeaderList, HeadersView } from "../http/headers.js";

const noHeaders: HeaderList = [];

/** A call over HTTP. Rarely used parts are created on demand. */
export class ServerCall<M extends DescMethod = DescMethod> implements Call {
  private lazyHeader: Headers | undefined;
  private lazyResponseHeader: Headers | undefined;
  private lazyResponseTrailer: Headers | undefined;
  private rateLimit: DescribedLimit | undefined;
  private bucket = "";

  constructor(
    readonly method: M,
    readonly exchange: Exchange,
    readonly protocol: ProtocolName,
  ) {}

  get requestMethod(): string {
    return this.exchange.method;
  }

  get header(): Headers {
    this.lazyHeader ??= new HeadersView(this.exchange.headers);
    return this.lazyHeader;
  }

  isRepeated(header: string): boolean {
    return this.exchange.isRepeated(header);
  }

  get requestId(): string {
    return this.exchange.requestId;
  }

  get startedAt(): number {
    return this.exchange.startedAt;
  }

  get peer(): Peer {
    return this.exchange;
  }

  get cancellation(): Cancellation {
    return this.exchange.cancellation;
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

  countResponseFor(owner: ResponseOwner, reserved?: CountedResponse): void {
    this.exchange.countResponseFor(owner, reserved);
  }

  onCounted(limit: DescribedLimit, bucket: string): void {
    this.rateLimit = limit;
    this.bucket = bucket;
  }

  /** The headers for the rate limit that the call counts against, if they are of use. */
  get rateLimitHeaders(): HeaderList {
    return this.rateLimit ? this.rateLimit.headersOf(this.bucket) : noHeaders;
  }

  get trailerList(): HeaderList {
    return this.lazyResponseTrailer ? toHeaderList(this.lazyResponseTrailer) : noHeaders;
  }
}

export function toHeaderList(headers: Headers): HeaderList {
  return [...headers].flat();
}

/** A call as its handler sees it. */
export class CallContext implements HandlerContext {
  constructor(
    private readonly call: ServerCall,
    readonly values: ContextValues,
  ) {}

  get method(): DescMethod {
    return this.call.method;
  }

  get service(): DescService {
    return this.call.method.parent;
  }

  get signal(): AbortSignal {
    return this.call.cancellation.signal;
  }

  timeoutMs(): number | undefined {
    return this.call.cancellation.timeLeft;
  }

  get requestMethod(): string {
    return this.call.requestMethod;
  }

  get requestHeader(): Headers {
    return this.call.header;
  }

  get responseHeader(): Headers {
    return this.call.responseHeader;
  }

  get responseTrailer(): Headers {
    return this.call.responseTrailer;
  }

  get protocolName(): string {
    return this.call.protocol;
  }

  get url(): string {
    return this.call.exchange.url;
  }
}

export type UnaryHandler = MethodImpl<DescMethodUnary>;

/** Sends the responses of a unary method. */
export interface ResponseWriter {
  send(call: ServerCall, message: Message): void;
  sendError(call: ServerCall, reason: unknown): void;
}

interface UnaryMethod {
  readonly pipeline: Pipeline;
  readonly handler: UnaryHandler;
  readonly writer: ResponseWriter;
}

/** Runs a unary call and sends its response. Rethrows an unexpected error after its response, so that it is logged. */
export function runUnaryCall(
  { pipeline, handler, writer }: UnaryMethod,
  call: ServerCall,
  receive: () => MaybePromise<Message>,
): MaybePromise<Handled> {
  const handle = (message: Message, values: ContextValues) =>
    handler(message, new CallContext(call, values)) as MaybePromise<Message>;

  const respond = (message: Message) => {
    writer.send(call, message);
    return logged;
  };
  const respondWithError = (reason: unknown) => {
    writer.sendError(call, reason);
    if (!(reason instanceof Problem)) {
      throw reason;
    }
    return logged;
  };

  try {
    const response = pipeline.unary(call, receive, handle);
    return response instanceof Promise
      ? response.then(respond).catch(respondWithError)
      : respond(response);
  } catch (reason) {
    return respondWithError(reason);
  }
}
