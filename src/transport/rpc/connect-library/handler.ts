import {
  type ConnectRouterOptions,
  createConnectRouter,
  createContextValues,
} from "@connectrpc/connect";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { type Call, callKey, type ProtocolName } from "../../../auth/caller.js";
import type { RedactKeys } from "../../../auth/keys.js";
import { invalidRequest, methodNotAllowed, Problem } from "../../../errors.js";
import { cancellationError } from "../../../middleware/deadline.js";
import { forConnect, type Interceptor } from "../../../middleware/interceptor.js";
import type { Interceptors } from "../../../middleware/pipeline.js";
import type { JsonOptions } from "../../codec/connect-json.js";
import { type Exchange, type Handled, handled, type RequestHandler } from "../../http/exchange.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import { type Implementation, type RpcOptions, unauthenticatedBodyLimit } from "../methods.js";
import { encodeMessage, grpcMessage, withGrpcMessageEncoding } from "../protocols/grpc.js";
import { toDecodeProblem } from "../protocols/protocol.js";
import { createLibraryMethod, type LibraryMethod, unsupportedMediaType } from "./method.js";
import { abortSlowMessages, limitBodyMemory, limitDecompression } from "./request-body.js";
import { discardBodyAfterResponse, sendBuffered, sendStream } from "./response-body.js";

/** Serves all RPC calls that the fast paths do not support with the Connect library. */
export function createLibraryHandler(
  options: RpcOptions,
  jsonOptions: JsonOptions,
): RequestHandler {
  const methods = createMethods(options, jsonOptions);

  async function handle(call: LibraryMethod, exchange: Exchange): Promise<Handled> {
    if (!call.handler.allowedMethods.includes(exchange.method)) {
      throw methodNotAllowed(call.handler.allowedMethods);
    }
    const { response } = exchange.native();
    exchange.call.protocol = protocolOf(exchange);
    const result = await call.serve(exchange, toUniversal(exchange, call));
    if (result.status === unsupportedMediaType) {
      throw new Problem(
        "unsupported_media_type",
        "Send a gRPC, gRPC-Web or Connect message, or see /openapi.json for the REST paths.",
      );
    }
    if (call.handler.method.methodKind === "unary" || exchange.call.refusal) {
      exchange.discardBody();
      await sendBuffered(exchange, withGrpcMessageEncoding(result));
      return handled;
    }
    discardBodyAfterResponse(exchange);
    const streamed = sendStream(exchange, result, options.writeTimeoutMs);
    await universalResponseToNodeResponse(withGrpcMessageEncoding(streamed), response);
    return handled;
  }

  return (exchange) => {
    const call = methods.get(exchange.path);
    return call ? handle(call, exchange) : refuseUnknownMethod(exchange, options.redactKeys);
  };
}

/** Refuses streams. The library opens a stream before it reads the body, so a body that throws does not refuse it. */
const refuseFirst: Interceptor = (next) => (request) => {
  const { refusal } = request.contextValues.get(callKey);
  if (refusal) {
    throw refusal;
  }
  return next(request);
};

/** Links the library's cancellation of a call to ours. */
const linkCancellation: Interceptor = (next) => (request) => {
  const { signal, stream, contextValues } = request;
  if (!stream) {
    const { cancellation } = contextValues.get(callKey);
    signal.addEventListener("abort", () => cancellation.cancel(cancellationError(signal)), {
      once: true,
    });
  }
  return next(request);
};

/** Turns decoding errors of stream messages into problems with a request id. */
function createStreamErrorsInterceptor(bodyLimit: number): Interceptor {
  async function* readable<T>(messages: AsyncIterable<T>, { requestId }: Call) {
    try {
      yield* messages;
    } catch (reason) {
      const problem = toDecodeProblem(reason, bodyLimit);
      problem.attachDetails(requestId);
      throw problem;
    }
  }

  return (next) => (request) =>
    next(
      request.stream
        ? {
            ...request,
            message: readable(request.message, request.contextValues.get(callKey)),
          }
        : request,
    );
}

/** Creates the methods by path. */
function createMethods(
  options: RpcOptions,
  jsonOptions: JsonOptions,
): ReadonlyMap<string, LibraryMethod> {
  const { implementations, unauthenticatedImplementations, interceptors, bodyLimit } = options;
  const { deadline, admission, reauthorization, inspection } = interceptors;
  return new Map([
    ...mount(options, {
      implementations,
      router: {
        readMaxBytes: bodyLimit,
        acceptCompression: limitDecompression([compressionGzip, compressionBrotli]),
        jsonOptions,
      },
      first: [refuseFirst],
      admission: [deadline, ...admission],
      reauthorization: [deadline, ...reauthorization],
      inspection,
    }),
    ...mount(options, {
      implementations: unauthenticatedImplementations,
      // No decompression for unauthenticated callers.
      router: { readMaxBytes: unauthenticatedBodyLimit, acceptCompression: [], jsonOptions },
      first: [],
      admission: [],
      reauthorization: [],
      inspection: [],
    }),
  ]);
}

interface Mounting extends Pick<Interceptors, "admission" | "reauthorization" | "inspection"> {
  readonly implementations: readonly Implementation[];
  readonly router: ConnectRouterOptions & { readonly readMaxBytes: number };
  /** Interceptors that run before all others. */
  readonly first: readonly Interceptor[];
}

function mount({ interceptors }: RpcOptions, mounting: Mounting): [string, LibraryMethod][] {
  const { observe, limitStreams, deadline } = interceptors;
  const { implementations, first, admission, reauthorization, inspection } = mounting;
  const bodyLimit = mounting.router.readMaxBytes;
  const readStream = createStreamErrorsInterceptor(bodyLimit);
  const all = [
    ...first,
    linkCancellation,
    observe,
    limitStreams,
    deadline,
    readStream,
    ...inspection,
  ];
  const router = createConnectRouter(mounting.router);
  for (const { service, handlers } of implementations) {
    router.service(service, handlers, { interceptors: all.map(forConnect) });
  }
  return router.handlers.map((handler) => {
    const call = createLibraryMethod({ handler, observe, admission, reauthorization, bodyLimit });
    return [handler.requestPath, call];
  });
}

/** Converts a request for the library. Fails if the URL is invalid. */
function toUniversal(exchange: Exchange, { isOneMessage, bodyLimit }: LibraryMethod) {
  const { request, response } = exchange.native();
  try {
    const { call } = exchange;
    const values = createContextValues().set(callKey, call);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    hideInvalidContentType(universal.header);
    // The rest of a refused body is discarded by the exchange.
    const parts = request.iterator({ destroyOnReturn: false });
    const body = limitBodyMemory(parts, exchange, bodyLimit);
    const mayBeSlow = !isOneMessage && exchange instanceof Http2Exchange;
    return { ...universal, body: mayBeSlow ? abortSlowMessages(body, exchange) : body };
  } catch {
    throw invalidRequest({ field: "host", message: "is missing or is not a valid host" });
  }
}

/** Matches every content type that the library supports. */
const contentTypePattern = /^application\/[a-z-]+(\+[a-z]+)?(; ?charset=[a-z\d-]+)?$/i;

/** The library caches unknown content types, and an invalid one may be a key or very long. */
function hideInvalidContentType(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== null && !contentTypePattern.test(type)) {
    headers.set("content-type", "unknown");
  }
}

/** The protocol of a request, by its content type. */
function protocolOf({ headers }: Exchange): ProtocolName {
  const [, kind] = /^application\/(grpc-web|grpc)\b/i.exec(headers["content-type"] ?? "") ?? [];
  return (kind?.toLowerCase() as ProtocolName | undefined) ?? "connect";
}

/** gRPC clients need a gRPC status if a method does not exist. */
function refuseUnknownMethod(exchange: Exchange, redactKeys: RedactKeys): Handled | undefined {
  const { headers, path } = exchange;
  const type = headers["content-type"] ?? "";
  if (!/^application\/grpc(?!-web)/.test(type)) {
    return undefined;
  }
  const message = encodeMessage(`unknown method ${redactKeys(path)}`);
  exchange.call.protocol = "grpc";
  exchange.problemCode = "unimplemented";
  exchange.send(200, ["content-type", type, "grpc-status", "12", grpcMessage, message]);
  return handled;
}
