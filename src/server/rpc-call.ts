import { setMaxListeners } from "node:events";
import type { DescMethodUnary, Message } from "@bufbuild/protobuf";
import {
  createContextValues,
  type Interceptor,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  createDeadlineSignal,
  type UniversalHandler,
  type UniversalServerRequest,
  type UniversalServerResponse,
} from "@connectrpc/connect/protocol";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { bodyTooLarge, type Problem, unreadable } from "../errors.js";
import { chain } from "./chain.js";
import { cutOffSlow } from "./drop-body.js";
import { askForBody, type Exchange } from "./http.js";
import { envelopeSize, readError, refuse, unsupportedMediaType } from "./refusal.js";

interface RpcCallOptions {
  readonly handler: UniversalHandler;
  readonly observe: Interceptor;
  /** Run on the headers alone, before anything of the message is read. */
  readonly admission: readonly Interceptor[];
  readonly bodyLimit: number;
}

/** A method of gRPC, gRPC-Web and Connect. */
export interface RpcCall {
  readonly handler: UniversalHandler;
  serve(exchange: Exchange, request: UniversalServerRequest): Promise<UniversalServerResponse>;
}

const longestTimer = 2 ** 31 - 1;
const timeoutHeaders = [
  ["grpc-timeout", parseGrpcTimeout],
  ["connect-timeout-ms", parseConnectTimeout],
] as const;

/**
 * Creates a method around the handler of the protocol library. The library
 * reads a message before it asks any interceptor, so callers are let in here;
 * and what it would refuse by itself is refused in our own words.
 */
export function createRpcCall(options: RpcCallOptions): RpcCall {
  const { handler, observe, admission, bodyLimit } = options;
  const admit = chain(admission, async (request) => request as unknown as UnaryResponse);

  /** Throws where the caller may not make the call, or its time for it runs out. */
  async function admitInTime(request: UnaryRequest): Promise<void> {
    const deadline = createDeadlineSignal(takeTimeout(request.header));
    try {
      const signal = AbortSignal.any([request.signal, deadline.signal]);
      await admit({ ...request, signal });
    } finally {
      deadline.cleanup();
    }
  }

  /** Writes the line about a call that never began, and answers what its caller may see. */
  async function note(reason: unknown, request: UnaryRequest): Promise<Problem> {
    const fail = observe(() => Promise.reject(reason));
    return fail(request).then(
      () => undefined as never,
      (problem: Problem) => problem,
    );
  }

  return {
    handler,

    async serve(exchange, request) {
      const { call } = exchange;
      const asked = withoutMessage(handler, request);
      const refuseFor = async (reason: unknown) => {
        const problem = await note(reason, asked);
        call.refusal = problem;
        return refuse(handler, request, problem);
      };

      try {
        await admitInTime(asked);
      } catch (reason) {
        return refuseFor(reason);
      }
      if (Number(request.header.get("content-length") ?? 0) > bodyLimit + envelopeSize) {
        return refuseFor(bodyTooLarge(bodyLimit));
      }
      askForBody(exchange);
      if (handler.method.methodKind === "unary") {
        cutOffSlow(exchange.request);
      } else {
        // Several readmissions may be under way, each of which listens for the end of the call.
        setMaxListeners(0, asked.signal);
        call.readmit = async () => {
          await admit(asked);
        };
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

/**
 * The time that a caller gives its call. One that no timer can be set to, which
 * would end at once, is taken away: no call takes as long anyway.
 */
function takeTimeout(header: Headers): number | undefined {
  let timeout: number | undefined;
  for (const [name, parse] of timeoutHeaders) {
    const { timeoutMs } = parse(header.get(name), Number.MAX_SAFE_INTEGER);
    if (timeoutMs !== undefined && timeoutMs > longestTimer) {
      header.delete(name);
    } else {
      timeout ??= timeoutMs;
    }
  }
  return timeout;
}
