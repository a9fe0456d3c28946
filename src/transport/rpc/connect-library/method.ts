import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
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
import { bodyTooLarge, type Problem } from "../../../errors.js";
import type { Interceptor } from "../../../middleware/interceptor.js";
import { chain, type NextUnary } from "../../../middleware/interceptor.js";
import type { Exchange } from "../../http/exchange.js";
import {
  envelopeSize,
  parseTimeout,
  startTimeout,
  toDecodeProblem,
} from "../protocols/protocol.js";

interface LibraryMethodOptions {
  readonly handler: UniversalHandler;
  readonly observe: Interceptor;
  /** Interceptors that need only the headers and run before the message is read. */
  readonly admission: readonly Interceptor[];
  /** The admission interceptors that run again while a stream is open. */
  readonly reauthorization: readonly Interceptor[];
  readonly bodyLimit: number;
}

/** A method that the protocol library serves. */
export interface LibraryMethod {
  readonly handler: UniversalHandler;
  /** Whether the request is a single message. */
  readonly isOneMessage: boolean;
  /** The message limit in bytes. */
  readonly bodyLimit: number;
  serve(exchange: Exchange, request: UniversalServerRequest): Promise<UniversalServerResponse>;
}

/**
 * Wraps a handler of the protocol library. The library reads a message before it
 * runs any interceptor, so admission runs here. Errors of the library are converted
 * to problems.
 */
export function createLibraryMethod(options: LibraryMethodOptions): LibraryMethod {
  const { handler, observe, admission, reauthorization, bodyLimit } = options;
  const isOneMessage = /^(unary|server_streaming)$/.test(handler.method.methodKind);
  const pass: NextUnary = (request) => request as unknown as UnaryResponse;
  const admit = chain(admission, pass);
  const reauthorize = chain(reauthorization, pass);

  /** Throws if the caller may not make the call, or its timeout expires. */
  async function admitInTime(request: UnaryRequest, exchange: Exchange): Promise<void> {
    if (parseTimeout(exchange.headers) === undefined) {
      // The library would set a timer with a delay that timers do not support.
      request.header.delete("grpc-timeout");
      request.header.delete("connect-timeout-ms");
    }
    startTimeout(exchange);
    try {
      await admit(request);
    } finally {
      exchange.call.cancellation.clearTimer();
    }
  }

  /** Logs a call that was refused before it started. Returns the error for the caller. */
  async function logRefusal(reason: unknown, request: UnaryRequest): Promise<Problem> {
    const fail = observe(() => {
      throw reason;
    });
    try {
      return (await fail(request)) as never;
    } catch (problem) {
      return problem as Problem;
    }
  }

  return {
    handler,
    isOneMessage,
    bodyLimit,

    async serve(exchange, request) {
      const { call } = exchange;
      const opening = withoutMessage(handler, request);
      const refuse = async (reason: unknown) => {
        const problem = await logRefusal(reason, opening);
        call.refusal = problem;
        return respondWithError(handler, request, problem);
      };

      try {
        await admitInTime(opening, exchange);
      } catch (reason) {
        return refuse(reason);
      }
      if (Number(request.header.get("content-length") ?? 0) > bodyLimit + envelopeSize) {
        return refuse(bodyTooLarge(bodyLimit));
      }
      exchange.sendContinue();
      if (isOneMessage) {
        exchange.startBodyTimeout();
      }
      if (handler.method.methodKind !== "unary") {
        call.reauthorize = async () => {
          await reauthorize(opening);
        };
      }
      try {
        const response = await handler(request);
        return call.logged || response.status === unsupportedMediaType
          ? response
          : refuse(toDecodeProblem(await readError(response), bodyLimit));
      } catch (reason) {
        if (call.logged) {
          throw reason;
        }
        return refuse(toDecodeProblem(reason, bodyLimit));
      }
    },
  };
}

/** A request without its message, for interceptors that need only the headers. */
function withoutMessage(
  { method, service }: UniversalHandler,
  { header, signal, url, method: requestMethod, contextValues }: UniversalServerRequest,
): UnaryRequest {
  return {
    stream: false,
    method: method as DescMethodUnary,
    service,
    requestMethod,
    url,
    header,
    signal,
    contextValues: contextValues ?? createContextValues(),
    message: {} as Message,
  };
}

/** The library's status for an unknown content type. */
export const unsupportedMediaType = 415;

/** Responds with an error in the caller's protocol: the library reports errors that a body throws. */
function respondWithError(
  handler: UniversalHandler,
  { method, header, ...request }: UniversalServerRequest,
  problem: Problem,
): Promise<UniversalServerResponse> {
  const type = (method === "POST" && header.get("content-type")) || "application/json";
  return handler({
    ...request,
    method: "POST",
    header: new Headers({ "content-type": type }),
    body: { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(problem) }) },
  });
}

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
    const bytes = await readAllBytes(body, Number.MAX_SAFE_INTEGER);
    return header?.get("content-type")?.startsWith("application/grpc-web")
      ? (findTrailerError(trailerParse(bytes.subarray(envelopeSize))) ?? unknown)
      : errorFromJsonBytes(bytes, undefined, unknown);
  } catch {
    return unknown;
  }
}
