import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { type HttpBody, HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { RestFormat } from "../../../gen/latchkey/v1/options_pb.js";
import { mayContainKey } from "../../contract/key-text.js";
import { accessOf } from "../../contract/methods.js";
import { methodNotAllowed, pathNotFound, toProblem } from "../../errors.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { createGenerationalCache, memoize } from "../../lib/cache.js";
import type { Pipelines } from "../../middleware/pipeline.js";
import { findRequestViolations } from "../../validation/validate.js";
import { cacheEncoded, type Encode } from "../codec/encoded-cache.js";
import type { Exchange, Handled, RequestHandler } from "../http/exchange.js";
import type { HeaderList } from "../http/headers.js";
import { sendProblem } from "../http/responses.js";
import { type ResponseWriter, runUnaryCall, ServerCall } from "../rpc/call.js";
import {
  type Implementation,
  isRawBody,
  unaryHandler,
  unauthenticatedBodyLimit,
} from "../rpc/methods.js";
import { type Binding, readBindings } from "./bindings.js";
import { createBodyReader } from "./body.js";
import { createDecoder } from "./decode.js";
import { addLastUseToRestJson, createEncoder, createHeaderWriter } from "./encode.js";
import { createRouter, splitPath } from "./router.js";

interface RestHandlerOptions {
  readonly implementations: readonly Implementation[];
  /** Services that need no key. */
  readonly unauthenticatedImplementations: readonly Implementation[];
  readonly pipelines: Pipelines;
  readonly bodyLimit: number;
  /** The maximum nesting depth of JSON. */
  readonly jsonDepth: number;
  /** The maximum number of list items in a request. */
  readonly listItems: number;
}

/** Returns the encoder of a response type. Methods with the same type share its cache. */
type EncoderOf = (schema: DescMessage) => Encode;

type PathFields = Readonly<Record<string, string>>;
type Route = (exchange: Exchange, fields: PathFields) => MaybePromise<Handled>;

/** Builds the request message. */
type Decode = (exchange: Exchange, fields: PathFields, body: unknown) => MaybePromise<Message>;

/** Reads the request message. */
type Receive = (exchange: Exchange, fields: PathFields) => MaybePromise<Message>;

const emptyBody = Buffer.alloc(0);
const noFields: PathFields = {};

/**
 * Creates the REST handler, which serves methods at the paths in their
 * `google.api.http` options. A request runs through the same pipeline and
 * handler as over gRPC. It must be the last handler: it refuses every other path.
 */
export function createRestHandler(options: RestHandlerOptions): RequestHandler {
  const router = createRouter<Route>();
  const encoderOf: EncoderOf = memoize((schema) =>
    cacheEncoded(schema, createEncoder(schema), addLastUseToRestJson),
  );
  /** Routes without path fields, by verb and path: a fast path in front of the router. */
  const fixed = new Map<string, Route>();
  const { implementations, unauthenticatedImplementations } = options;
  for (const implementation of [...implementations, ...unauthenticatedImplementations]) {
    for (const binding of implementation.service.methods.flatMap(readBindings)) {
      const { verb, segments } = binding;
      const route = createRoute(options, implementation, binding, encoderOf);
      router.add(verb, segments, route);
      if (segments.every((segment) => "literal" in segment)) {
        fixed.set(`${verb} /${segments.map(({ literal }) => literal).join("/")}`, route);
      }
    }
  }

  return (exchange) => {
    const { method, path } = exchange;
    const route = fixed.get(`${method} ${path}`);
    if (route) {
      return route(exchange, noFields);
    }
    const verb = method === "HEAD" ? "GET" : method;
    const segments = splitPath(path);
    const match = segments && router.match(verb, segments);
    if (!match) {
      throw pathNotFound();
    }
    if ("allow" in match) {
      throw methodNotAllowed(
        match.allow.flatMap((verb) => (verb === "GET" ? [verb, "HEAD"] : verb)),
      );
    }
    return match.route(exchange, match.fields);
  };
}

function createRoute(
  options: RestHandlerOptions,
  implementation: Implementation,
  binding: Binding,
  encoderOf: EncoderOf,
): Route {
  const { method } = binding;
  const isUnauthenticated = options.unauthenticatedImplementations.includes(implementation);
  const { authenticated, unauthenticated } = options.pipelines;
  const unary = {
    pipeline: isUnauthenticated ? unauthenticated : authenticated,
    handler: unaryHandler(implementation, method),
    writer: isRawBody(method.output) ? createRawWriter(binding) : createWriter(binding, encoderOf),
  };
  const receive = createReceive(binding, {
    bodyLimit: isUnauthenticated ? unauthenticatedBodyLimit(method) : options.bodyLimit,
    jsonDepth: options.jsonDepth,
    listItems: options.listItems,
  });

  return (exchange, fields) => {
    exchange.isUnauthenticated = isUnauthenticated;
    if (binding.format === RestFormat.LENIENT_JSON) {
      exchange.echoRequestId();
    }
    return runUnaryCall(unary, new ServerCall(method, exchange, "rest"), () =>
      receive(exchange, fields),
    );
  };
}

function createWriter(binding: Binding, encoderOf: EncoderOf): ResponseWriter {
  const { method, status } = binding;
  const encode = status === 204 ? () => emptyBody : encoderFor(binding, encoderOf);
  const type: HeaderList = status === 204 ? [] : ["content-type", "application/json"];
  const headersOf = createHeaderWriter(method.output, type);
  return {
    send({ exchange, headerList, rateLimitHeaders }, message) {
      const headers = headersOf(message);
      const hasOthers = headerList.length > 0 || rateLimitHeaders.length > 0;
      const all = hasOthers ? [...headers, ...headerList, ...rateLimitHeaders] : headers;
      exchange.send(status, all, encode(message));
    },
    sendError({ exchange, rateLimitHeaders }, reason) {
      const problem = toProblem(reason);
      // A refusal by a rate limit has these headers itself. A decision is for the client of a gateway.
      const isOwn = problem.problemCode !== "rate_limited" && !problem.isDecision;
      const others = isOwn ? rateLimitHeaders : [];
      sendProblem(exchange, problem, others);
    },
  };
}

/** Sends the body in a response message as it is. */
function createRawWriter({ status }: Binding): ResponseWriter {
  return {
    send({ exchange, headerList }, message) {
      const { contentType, data } = create(HttpBodySchema, message as HttpBody);
      exchange.send(status, ["content-type", contentType, ...headerList], Buffer.from(data));
    },
    sendError: ({ exchange }, reason) => sendProblem(exchange, reason),
  };
}

function decoderOf(
  { method, segments, hasBody, isPatch, format }: Binding,
  listItems: number,
): Decode {
  const pathFields = segments.flatMap((segment) => ("field" in segment ? segment.field : []));
  const isForGateways = accessOf(method).keyHeader !== "";
  const decoder = createDecoder(method.input, pathFields, hasBody, {
    ignoresUnknown: format !== RestFormat.UNSPECIFIED,
    // A gateway fills in variables. If one is empty, a check without the field would be weaker.
    keepsEmpty: isForGateways,
    isPatch,
    findRuleViolations: (message) => findRequestViolations(method.input, message, listItems),
  });
  const decode: Decode = ({ query }, fields, body) => decoder.decode(body, fields, query);
  // A gateway repeats a few queries. Other clients may search for texts that must not stay in memory.
  return isForGateways ? cacheByQuery(decode) : decode;
}

/** The total length of the URLs in each of the two cache generations. A query is a slice of its URL. */
const generationLength = 100_000;

/** Caches the messages of repeated queries. Handlers do not change messages. */
function cacheByQuery(decode: Decode): Decode {
  const cache = createGenerationalCache<Message>(generationLength, 8);
  return (exchange, fields, body) => {
    const { query, url } = exchange;
    const cached = cache.get(query, 0);
    if (cached) {
      return cached;
    }
    return mapMaybePromise(decode(exchange, fields, body), (message) =>
      cache.shouldAdmit() && !mayContainKey(query)
        ? cache.add(query, 0, message, url.length)
        : message,
    );
  };
}

function encoderFor({ method: { output }, format }: Binding, encoderOf: EncoderOf): Encode {
  return format === RestFormat.UNSPECIFIED
    ? encoderOf(output)
    : createEncoder(output, { omitsAbsent: true });
}

type ReceiveLimits = Pick<RestHandlerOptions, "bodyLimit" | "jsonDepth" | "listItems">;

function createReceive(binding: Binding, limits: ReceiveLimits): Receive {
  if (isRawBody(binding.method.input)) {
    return (exchange) =>
      mapMaybePromise(exchange.readBody(limits.bodyLimit), (data) => toRawBody(exchange, data));
  }
  const decode = decoderOf(binding, limits.listItems);
  if (!binding.hasBody) {
    return (exchange, fields) => decode(exchange, fields, {});
  }
  const readBody = createBodyReader(binding, limits);
  return (exchange, fields) =>
    mapMaybePromise(readBody(exchange), (body) => decode(exchange, fields, body));
}

function toRawBody({ headers }: Exchange, data: Buffer): HttpBody {
  return create(HttpBodySchema, { contentType: headers["content-type"] ?? "", data });
}
