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
import { callKey, type ProtocolName } from "../../../auth/caller.js";
import type { WithoutSecrets } from "../../../auth/keys.js";
import { invalidRequest, methodNotAllowed, Problem } from "../../../errors.js";
import { reasonOf } from "../../../middleware/deadline.js";
import { forConnect, type Interceptor } from "../../../middleware/interceptor.js";
import { createReadStreamInterceptor } from "../../../middleware/message-stream.js";
import type { Interceptors } from "../../../middleware/pipeline.js";
import type { JsonOptions } from "../../codec/connect-json.js";
import { type Door, type Exchange, type Served, served } from "../../http/exchange.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import { type Implementation, openBodyLimit, type RpcOptions } from "../implementation.js";
import { encodeMessage, grpcMessage, withReadableMessage } from "../protocols/grpc.js";
import { createRpcCall, type RpcCall, unsupportedMediaType } from "./call.js";
import { decompressInTurn } from "./decompression.js";
import { cutOffSlowMessages, holdBody } from "./request-body.js";
import { deliverStream, dropBodyWhenAnswered, sendWhole } from "./response-body.js";

/**
 * Serves gRPC, gRPC-Web and Connect by the library of the protocol: streams,
 * and unary calls that are out of the ordinary. Takes nothing else.
 */
export function createRpc(options: RpcOptions, jsonOptions: JsonOptions): Door {
  const calls = createCalls(options, jsonOptions);

  async function serve(call: RpcCall, exchange: Exchange): Promise<Served> {
    if (!call.handler.allowedMethods.includes(exchange.method)) {
      throw methodNotAllowed(call.handler.allowedMethods);
    }
    const { response } = exchange.native();
    exchange.call.protocol = protocolOf(exchange);
    const answer = await call.serve(exchange, toUniversal(exchange, call));
    if (answer.status === unsupportedMediaType) {
      throw new Problem(
        "unsupported_media_type",
        "Send a message of gRPC, gRPC-Web or Connect, or see /openapi.json for the paths of REST.",
      );
    }
    if (call.handler.method.methodKind === "unary" || exchange.call.refusal) {
      exchange.dropBody();
      await sendWhole(exchange, withReadableMessage(answer));
      return served;
    }
    dropBodyWhenAnswered(exchange);
    const delivered = deliverStream(exchange, answer, options.patience);
    await universalResponseToNodeResponse(withReadableMessage(delivered), response);
    return served;
  }

  return (exchange) => {
    const call = calls.get(exchange.path);
    return call ? serve(call, exchange) : refuseGrpc(exchange, options.withoutSecrets);
  };
}

/** The library opens a stream before it reads its body, so that no error in there would refuse it. */
const refuseFirst: Interceptor = (next) => (request) => {
  const { refusal } = request.contextValues.get(callKey);
  if (refusal) {
    throw refusal;
  }
  return next(request);
};

/** The library tells by a signal of its own that a call is given up. */
const endWithSignal: Interceptor = (next) => (request) => {
  const { signal, stream, contextValues } = request;
  if (!stream) {
    const { cancellation } = contextValues.get(callKey);
    signal.addEventListener("abort", () => cancellation.cancel(reasonOf(signal)), { once: true });
  }
  return next(request);
};

/** The calls that are served, by their paths. */
function createCalls(options: RpcOptions, jsonOptions: JsonOptions): ReadonlyMap<string, RpcCall> {
  const { implementations, openImplementations, interceptors, bodyLimit } = options;
  const { deadline, admission, readmission, inspection } = interceptors;
  return new Map([
    ...mount(options, {
      implementations,
      router: {
        readMaxBytes: bodyLimit,
        acceptCompression: decompressInTurn([compressionGzip, compressionBrotli]),
        jsonOptions,
      },
      first: [refuseFirst],
      admission: [deadline, ...admission],
      readmission: [deadline, ...readmission],
      inspection,
    }),
    ...mount(options, {
      implementations: openImplementations,
      // Anyone may call them, so nothing is decompressed for that.
      router: { readMaxBytes: openBodyLimit, acceptCompression: [], jsonOptions },
      first: [],
      admission: [],
      readmission: [],
      inspection: [],
    }),
  ]);
}

interface Mounting extends Pick<Interceptors, "admission" | "readmission" | "inspection"> {
  readonly implementations: readonly Implementation[];
  readonly router: ConnectRouterOptions & { readonly readMaxBytes: number };
  /** Those that go before all others. */
  readonly first: readonly Interceptor[];
}

function mount({ interceptors }: RpcOptions, mounting: Mounting): [string, RpcCall][] {
  const { observe, limitStreams, deadline } = interceptors;
  const { implementations, first, admission, readmission, inspection } = mounting;
  const bodyLimit = mounting.router.readMaxBytes;
  const readStream = createReadStreamInterceptor(bodyLimit);
  const all = [...first, endWithSignal, observe, limitStreams, deadline, readStream, ...inspection];
  const router = createConnectRouter(mounting.router);
  for (const { service, handlers } of implementations) {
    router.service(service, handlers, { interceptors: all.map(forConnect) });
  }
  return router.handlers.map((handler) => {
    const call = createRpcCall({ handler, observe, admission, readmission, bodyLimit });
    return [handler.requestPath, call];
  });
}

/** The address of a request is the caller's own words and may make no sense. */
function toUniversal(exchange: Exchange, { isOneMessage, bodyLimit }: RpcCall) {
  const { request, response } = exchange.native();
  try {
    const { call } = exchange;
    const values = createContextValues().set(callKey, call);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    hideOddType(universal.header);
    // What is not read of a refused body is dropped by us.
    const parts = request.iterator({ destroyOnReturn: false });
    const body = holdBody(parts, exchange, bodyLimit);
    const mayBeSlow = !isOneMessage && exchange instanceof Http2Exchange;
    return { ...universal, body: mayBeSlow ? cutOffSlowMessages(body, exchange) : body };
  } catch {
    throw invalidRequest({ field: "host", message: "is missing or is not a valid host" });
  }
}

/** The form of all types of content that the library knows. */
const typeForm = /^application\/[a-z-]+(\+[a-z]+)?(; ?charset=[a-z\d-]+)?$/i;

/** The library remembers the types that it was asked for, and one that is none may be a key, or very long. */
function hideOddType(headers: Headers): void {
  const type = headers.get("content-type");
  if (type !== null && !typeForm.test(type)) {
    headers.set("content-type", "unknown");
  }
}

/** The protocol of what the library takes, by its content type. */
function protocolOf({ headers }: Exchange): ProtocolName {
  const [, kind] = /^application\/(grpc-web|grpc)\b/i.exec(headers["content-type"] ?? "") ?? [];
  return (kind?.toLowerCase() as ProtocolName | undefined) ?? "connect";
}

/** A gRPC client must be told in its own terms that there is no such method. */
function refuseGrpc(exchange: Exchange, withoutSecrets: WithoutSecrets): Served | undefined {
  const { headers, path } = exchange;
  const type = headers["content-type"] ?? "";
  if (!/^application\/grpc(?!-web)/.test(type)) {
    return undefined;
  }
  const message = encodeMessage(`there is no method ${withoutSecrets(path)}`);
  exchange.call.protocol = "grpc";
  exchange.code = "unimplemented";
  exchange.send(200, ["content-type", type, "grpc-status", "12", grpcMessage, message]);
  return served;
}
