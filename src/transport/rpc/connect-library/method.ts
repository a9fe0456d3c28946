import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextKey,
  createContextValues,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  readAllBytes,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { ProtocolName } from "../../../call.js";
import {
  bodyTooLarge,
  type Problem,
  requestCanceled,
  unsupportedMediaType,
} from "../../../errors.js";
import type { Cancellation } from "../../../lib/cancellation.js";
import { cancellationError } from "../../../middleware/deadline.js";
import type { Pipeline } from "../../../middleware/pipeline.js";
import { type Exchange, type Handled, logged } from "../../http/exchange.js";
import { sendProblem } from "../../http/responses.js";
import { ServerCall } from "../call.js";
import { withGrpcMessageEncoding } from "../protocols/grpc.js";
import { envelopeSize, startTimeout, toDecodeProblem } from "../protocols/protocol.js";
import { protocolByType } from "../unary.js";
import { decompressOwn } from "./request-body.js";
import { discardBodyAfterResponse, sendBuffered, sendStream } from "./response-body.js";

type LibraryRequest = UnaryRequest | StreamRequest;
type LibraryResponse = UnaryResponse | StreamResponse;
type Next = (request: LibraryRequest) => Promise<LibraryResponse>;

/** Runs when the library has read a unary request, or the headers of a stream. */
type Intercept = (request: LibraryRequest, next: Next) => Promise<LibraryResponse>;

const interceptKey = createContextKey<Intercept>((request, next) => next(request));

/** Passes each call of the library to the function that `handle` sets for it. */
export const interceptLibrary: Interceptor = (next) => (request) =>
  request.contextValues.get(interceptKey)(request, next);

interface LibraryMethodOptions {
  readonly handler: UniversalHandler;
  readonly pipeline: Pipeline;
  readonly bodyLimit: number;
  /** Milliseconds that a client may take to read a part of a stream. */
  readonly writeTimeoutMs: number;
}

/** A method that the protocol library serves. */
export interface LibraryMethod {
  readonly allowedMethods: readonly string[];
  /** Whether the request is a single message. */
  readonly isOneMessage: boolean;
  /** The message limit in bytes. */
  readonly bodyLimit: number;
  /** Handles a call. `convert` creates the request of the library, which a refused call does not need. */
  handle(exchange: Exchange, convert: () => UniversalServerRequest): Promise<Handled>;
}

/**
 * Wraps a handler of the protocol library. The library would read a message
 * before it runs any interceptor, so it starts only when the pipeline reads the
 * message. Its errors are converted to problems.
 */
export function createLibraryMethod(options: LibraryMethodOptions): LibraryMethod {
  const { handler, pipeline, bodyLimit, writeTimeoutMs } = options;
  const { method } = handler;
  const isOneMessage = /^(unary|server_streaming)$/.test(method.methodKind);

  async function runUnary(call: ServerCall, start: Start): Promise<LibraryResponse> {
    let started: Started;
    const receive = async () => {
      started = await start();
      return started.request.message as Message;
    };
    return pipeline.unary(call, receive, (_message, contextValues) =>
      started.next({ ...started.request, contextValues } as UnaryRequest),
    );
  }

  async function runStream(call: ServerCall, start: Start): Promise<LibraryResponse> {
    let response!: StreamResponse;
    const message = await pipeline.stream(call, async (contextValues) => {
      const { request, next } = await start();
      const message = readMessages(request.message as AsyncIterable<Message>);
      response = (await next({ ...request, message, contextValues } as StreamRequest)) as never;
      return response.message;
    });
    return { ...response, message };
  }

  async function* readMessages(messages: AsyncIterable<Message>): AsyncGenerator<Message> {
    try {
      for await (const message of messages) {
        if (isOneMessage) {
          await pipeline.validate(method, message);
        }
        yield message;
      }
    } catch (reason) {
      throw toDecodeProblem(reason, bodyLimit);
    }
  }

  async function handle(
    exchange: Exchange,
    convert: () => UniversalServerRequest,
  ): Promise<Handled> {
    const call = new ServerCall(method, exchange, protocolOf(exchange));
    let universal: UniversalServerRequest | undefined;
    let response: Promise<UniversalServerResponse> | undefined;
    let isStarted = false;

    /** Runs the library until it has read a unary request, or the headers of a stream. */
    function start(): Promise<Started> {
      if (exchange.isClosed) {
        // Node would never report the end of the request to the library.
        throw requestCanceled();
      }
      const converted = convert();
      universal = converted;
      if (!isTypeKnown(converted)) {
        throw unknownType(method, exchange);
      }
      if (Number(converted.header.get("content-length") ?? 0) > bodyLimit + envelopeSize) {
        throw bodyTooLarge(bodyLimit);
      }
      exchange.sendContinue();
      if (isOneMessage) {
        exchange.startBodyTimeout();
      }
      // From here the library has a timer of its own.
      exchange.cancellation.clearTimer();
      return new Promise((resolve, reject) => {
        response = runLibrary(converted, (request, next) => {
          isStarted = true;
          linkCancellation(request.signal, exchange.cancellation);
          resolve({ request, next });
          return outcome;
        });
        response.then(
          async (early) => isStarted || reject(await toProblem(early, exchange)),
          (reason) => reject(toDecodeProblem(reason, bodyLimit)),
        );
      });
    }

    // Starts later, when `outcome` is set.
    const outcome = Promise.resolve().then(() =>
      method.methodKind === "unary" ? runUnary(call, start) : runStream(call, start),
    );
    startTimeout(exchange);
    try {
      await outcome;
    } catch (problem) {
      if (!isStarted) {
        if (!exchange.isClosed) {
          await sendRefusal(call, problem as Problem, () => universal ?? convert());
        }
        return logged;
      }
    } finally {
      exchange.cancellation.clearTimer();
    }
    await send(exchange, await (response as Promise<UniversalServerResponse>));
    return logged;
  }

  function runLibrary(
    request: UniversalServerRequest,
    intercept: Intercept,
  ): Promise<UniversalServerResponse> {
    const contextValues = createContextValues().set(interceptKey, intercept);
    return handler({ ...request, contextValues });
  }

  /** The error in a response of the library to a request that it could not read. */
  async function toProblem(
    response: UniversalServerResponse,
    exchange: Exchange,
  ): Promise<Problem> {
    return response.status === unknownTypeStatus
      ? unknownType(method, exchange)
      : toDecodeProblem(await readError(response), bodyLimit);
  }

  async function send(exchange: Exchange, response: UniversalServerResponse): Promise<void> {
    if (method.methodKind === "unary") {
      exchange.discardBody();
      await sendBuffered(exchange, withGrpcMessageEncoding(response));
      return;
    }
    discardBodyAfterResponse(exchange);
    const streamed = sendStream(exchange, response, writeTimeoutMs);
    await universalResponseToNodeResponse(
      withGrpcMessageEncoding(streamed),
      exchange.native().response,
    ).catch((reason) => {
      // If the client has disconnected, the pipeline has logged the call.
      if (!exchange.isClosed) {
        throw reason;
      }
    });
  }

  /** Whether the content type names a protocol. GET has none. */
  function isTypeKnown({ method, header }: UniversalServerRequest): boolean {
    return method === "GET" || handler.supportedContentType(header.get("content-type") ?? "");
  }

  /**
   * Sends an error in the caller's protocol, if that is known. Most need no library,
   * which is slow. It sends what a body or an interceptor throws.
   */
  async function sendRefusal(
    call: ServerCall,
    problem: Problem,
    convert: () => UniversalServerRequest,
  ): Promise<void> {
    const { exchange } = call;
    const protocol = exchange.method === "POST" ? protocolByType(exchange) : undefined;
    if (protocol && method.methodKind === "unary") {
      exchange.discardBody();
      protocol.respondWithError(exchange, call, problem);
      return;
    }
    const universal = convert();
    exchange.discardBody();
    if (problem.problemCode === "unsupported_media_type" || !isTypeKnown(universal)) {
      sendProblem(exchange, problem);
      return;
    }
    const { method: verb, header, ...request } = universal;
    const type = (verb === "POST" && header.get("content-type")) || "application/json";
    const fail = () => Promise.reject(problem);
    const response = await runLibrary(
      {
        ...request,
        method: "POST",
        header: new Headers({ "content-type": type }),
        body: { [Symbol.asyncIterator]: () => ({ next: fail }) },
      },
      fail,
    );
    await sendBuffered(exchange, withGrpcMessageEncoding(response));
  }

  return { allowedMethods: handler.allowedMethods, isOneMessage, bodyLimit, handle };
}

/** A request that the library has read. */
interface Started {
  readonly request: LibraryRequest;
  /** Calls the handler. */
  readonly next: Next;
}

type Start = () => Promise<Started>;

/** The protocol of a request, by its content type. */
function protocolOf({ headers }: Exchange): ProtocolName {
  const [, kind] = /^application\/(grpc-web|grpc)\b/i.exec(headers["content-type"] ?? "") ?? [];
  return (kind?.toLowerCase() as ProtocolName | undefined) ?? "connect";
}

/** Cancels a call when the library cancels it. */
function linkCancellation(signal: AbortSignal, cancellation: Cancellation): void {
  signal.addEventListener("abort", () => cancellation.cancel(cancellationError(signal)), {
    once: true,
  });
}

function unknownType({ methodKind }: DescMethod, { method, headers, query }: Exchange): Problem {
  const { "content-type": type = "" } = headers;
  const given = method === "GET" ? (new URLSearchParams(query).get("encoding") ?? "") : type;
  const connect = methodKind === "unary" ? "application/" : "application/connect+";
  return unsupportedMediaType(
    [`${connect}json`, `${connect}proto`, "application/grpc", "application/grpc-web"],
    { type: given, encoding: "identity" },
  );
}

/** The library's status for an unknown content type. */
const unknownTypeStatus = 415;

/** Reads the error in a response of the library, in any protocol. */
async function readError({
  header,
  body,
  trailer,
}: UniversalServerResponse): Promise<ConnectError> {
  const unknown = new ConnectError("", Code.InvalidArgument);
  if (trailer || !body) {
    return (trailer && findTrailerError(trailer)) ?? unknown;
  }
  try {
    const sent = await readAllBytes(body, Number.MAX_SAFE_INTEGER);
    const bytes = decompressOwn(sent, header?.get("content-encoding") ?? "");
    return header?.get("content-type")?.startsWith("application/grpc-web")
      ? (findTrailerError(trailerParse(bytes.subarray(envelopeSize))) ?? unknown)
      : errorFromJsonBytes(bytes, undefined, unknown);
  } catch {
    return unknown;
  }
}
