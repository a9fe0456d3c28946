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
import { bodyTooLarge, type Problem, unreadable } from "../../../errors.js";
import type { Interceptor } from "../../../middleware/interceptor.js";
import { chain, type NextUnary } from "../../../middleware/interceptor.js";
import type { Exchange } from "../../http/exchange.js";
import { limitTime, timeoutOf } from "../fast-path.js";
import { envelopeSize } from "../protocols/protocol.js";

interface RpcCallOptions {
  readonly handler: UniversalHandler;
  readonly observe: Interceptor;
  /** Run on the headers alone, before anything of the message is read. */
  readonly admission: readonly Interceptor[];
  /** Run on them again while a stream goes on. */
  readonly readmission: readonly Interceptor[];
  readonly bodyLimit: number;
}

/** A method of gRPC, gRPC-Web and Connect. */
export interface RpcCall {
  readonly handler: UniversalHandler;
  /** Whether its callers send one message, and that is that. */
  readonly isOneMessage: boolean;
  /** How many bytes a message may have. */
  readonly bodyLimit: number;
  serve(exchange: Exchange, request: UniversalServerRequest): Promise<UniversalServerResponse>;
}

/**
 * Creates a method around the handler of the protocol library. The library
 * reads a message before it asks any interceptor, so callers are let in here;
 * and what it would refuse by itself is refused in our own words.
 */
export function createRpcCall(options: RpcCallOptions): RpcCall {
  const { handler, observe, admission, readmission, bodyLimit } = options;
  const isOneMessage = /^(unary|server_streaming)$/.test(handler.method.methodKind);
  const pass: NextUnary = (request) => request as unknown as UnaryResponse;
  const admit = chain(admission, pass);
  const admitAgain = chain(readmission, pass);

  /** Throws where the caller may not make the call, or its time for it runs out. */
  async function admitInTime(request: UnaryRequest, exchange: Exchange): Promise<void> {
    if (timeoutOf(exchange.headers) === undefined) {
      // The library would try to set a timer to a time that none can be set to.
      request.header.delete("grpc-timeout");
      request.header.delete("connect-timeout-ms");
    }
    limitTime(exchange);
    try {
      await admit(request);
    } finally {
      exchange.call.cancellation.clearTimer();
    }
  }

  /** Writes the line about a call that never began, and answers what its caller may see. */
  async function note(reason: unknown, request: UnaryRequest): Promise<Problem> {
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
      const asked = withoutMessage(handler, request);
      const refuseFor = async (reason: unknown) => {
        const problem = await note(reason, asked);
        call.refusal = problem;
        return refuse(handler, request, problem);
      };

      try {
        await admitInTime(asked, exchange);
      } catch (reason) {
        return refuseFor(reason);
      }
      if (Number(request.header.get("content-length") ?? 0) > bodyLimit + envelopeSize) {
        return refuseFor(bodyTooLarge(bodyLimit));
      }
      exchange.askForBody();
      if (isOneMessage) {
        exchange.cutOffSlowBody();
      }
      if (handler.method.methodKind !== "unary") {
        const readmit = async () => {
          await admitAgain(asked);
        };
        call.readmit = readmit;
      }
      try {
        const answer = await handler(request);
        return call.logged || answer.status === unsupportedMediaType
          ? answer
          : refuseFor(unreadable(await readError(answer), bodyLimit));
      } catch (reason) {
        if (call.logged) {
          throw reason;
        }
        return refuseFor(unreadable(reason, bodyLimit));
      }
    },
  };
}

/** A request as interceptors see it that look at headers only. */
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

/** The status of the library's answer to a content type that is of no protocol. */
export const unsupportedMediaType = 415;

/** Refuses a call in its own protocol: the library tells what goes wrong while it reads a body. */
export function refuse(
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

/** The error that the library gave as an answer, in whichever protocol. */
export async function readError({
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
