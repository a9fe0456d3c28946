import type { Message } from "@bufbuild/protobuf";
import { methodNotAllowed, Problem } from "../../errors.js";
import type { Interceptors } from "../../interceptors/interceptors.js";
import { type Exchange, headersOf, send } from "../http.js";
import { type Implementation, unaryHandler } from "../implementation.js";
import { createUnaryCall } from "../unary-call.js";
import { type Binding, readBinding } from "./binding.js";
import { createDecoder, type MessageDecoder } from "./decode.js";
import { createEncoder } from "./encode.js";
import { parseJson } from "./parse-json.js";
import { readBody } from "./read-body.js";
import { createRouter } from "./router.js";
import { splitPath } from "./template.js";

interface GatewayOptions {
  readonly implementations: readonly Implementation[];
  readonly interceptors: Interceptors;
  readonly bodyLimit: number;
}

type PathFields = Readonly<Record<string, string>>;
type Route = (exchange: Exchange, fields: PathFields) => Promise<void>;

/**
 * Serves methods at the paths that their protos bind them to. A request goes
 * through the same interceptors to the same handler as over gRPC. Takes every
 * request: what is bound to nothing is not found.
 */
export function createGateway(options: GatewayOptions): (exchange: Exchange) => Promise<true> {
  const router = createRouter<Route>();
  for (const implementation of options.implementations) {
    for (const binding of implementation.service.methods.flatMap((it) => readBinding(it) ?? [])) {
      router.add(binding.verb, binding.segments, createRoute(options, implementation, binding));
    }
  }

  return async (exchange) => {
    const path = splitPath(exchange.path);
    const { method = "" } = exchange.request;
    const match = path && router.match(method === "HEAD" ? "GET" : method, path);
    if (!match) {
      throw new Problem(
        "path_not_found",
        "There is nothing here. See /openapi.json for what there is.",
      );
    }
    if ("allow" in match) {
      throw methodNotAllowed(
        match.allow.flatMap((verb) => (verb === "GET" ? [verb, "HEAD"] : verb)),
      );
    }
    await match.route(exchange, match.fields);
    return true;
  };
}

function createRoute(
  options: GatewayOptions,
  implementation: Implementation,
  binding: Binding,
): Route {
  const { method, segments, hasBody, status } = binding;
  const pathFields = segments.flatMap((segment) => ("field" in segment ? segment.field : []));
  const decoder = createDecoder(method.input, pathFields, hasBody);
  const encode = status === 204 ? () => "" : createEncoder(method.output);
  const { observe, deadline, admission, inspection } = options.interceptors;
  const handler = unaryHandler(implementation, method);
  const run = createUnaryCall({
    method,
    handler,
    before: [observe, deadline, ...admission],
    after: inspection,
  });

  return async (exchange, fields) => {
    const { request, response, call } = exchange;
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) {
        gone.abort();
      }
    });
    const { message, header } = await run({
      call,
      header: headersOf(request),
      signal: gone.signal,
      requestMethod: request.method ?? "",
      url: request.url ?? "",
      receive: () => receive(exchange, decoder, fields, hasBody ? options.bodyLimit : 0),
    });
    const type = status === 204 ? {} : { "content-type": "application/json" };
    send(exchange, status, { ...Object.fromEntries(header), ...type }, encode(message));
  };
}

/** Reads what a request says. No body at all is an empty one. */
async function receive(
  exchange: Exchange,
  decoder: MessageDecoder,
  fields: PathFields,
  bodyLimit: number,
): Promise<Message> {
  const query = new URLSearchParams(exchange.query);
  if (bodyLimit === 0) {
    return decoder.decode({}, fields, query);
  }
  const body = await readBody(exchange, bodyLimit);
  if (body.length === 0) {
    return decoder.decode({}, fields, query);
  }
  checkContentType(exchange);
  return decoder.decode(parseJson(body), fields, query);
}

function checkContentType({ request }: Exchange): void {
  const { "content-type": type = "", "content-encoding": encoding = "identity" } = request.headers;
  if (!/^application\/json\s*(;|$)/i.test(type) || encoding !== "identity") {
    throw new Problem(
      "unsupported_media_type",
      "Send the body as application/json, not compressed.",
    );
  }
}
