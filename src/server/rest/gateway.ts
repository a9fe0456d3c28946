import type { Message } from "@bufbuild/protobuf";
import { methodNotAllowed, Problem } from "../../errors.js";
import type { Interceptors } from "../../interceptors/interceptors.js";
import { restText, type WithRestText } from "../../rest-text.js";
import type { Exchange, HeaderList } from "../exchange.js";
import { type Implementation, unaryHandler } from "../implementation.js";
import { createUnaryCall, UnaryCallRequest } from "../unary-call.js";
import { type Binding, readBinding } from "./binding.js";
import { createDecoder, type MessageDecoder } from "./decode.js";
import { createEncoder } from "./encode.js";
import { parseJson } from "./parse-json.js";
import { createRouter } from "./router.js";
import { splitPath } from "./template.js";

interface GatewayOptions {
  readonly implementations: readonly Implementation[];
  readonly interceptors: Interceptors;
  readonly bodyLimit: number;
}

type PathFields = Readonly<Record<string, string>>;
type Route = (exchange: Exchange, fields: PathFields) => Promise<void>;

const noFields: PathFields = {};
const noQuery = new URLSearchParams();

/**
 * Serves methods at the paths that their protos bind them to. A request goes
 * through the same interceptors to the same handler as over gRPC. Takes every
 * request: what is bound to nothing is not found.
 */
export function createGateway(options: GatewayOptions): (exchange: Exchange) => Promise<void> {
  const router = createRouter<Route>();
  /** Routes without fields, by verb and path, which are found quicker so. */
  const fixed = new Map<string, Route>();
  for (const implementation of options.implementations) {
    for (const binding of implementation.service.methods.flatMap((it) => readBinding(it) ?? [])) {
      const { verb, segments } = binding;
      const route = createRoute(options, implementation, binding);
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
    return match.route(exchange, match.fields);
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
  const type: HeaderList = status === 204 ? [] : ["content-type", "application/json"];
  const run = createUnaryCall({
    handler: unaryHandler(implementation, method),
    before: [observe, deadline, ...admission],
    after: inspection,
  });

  return async (exchange, fields) => {
    const receive = () => readRequest(exchange, decoder, fields, hasBody ? options.bodyLimit : 0);
    const call = new UnaryCallRequest(method, exchange, "rest", receive);
    const { message } = await run(call);
    const { headerList } = call;
    const body = (message as WithRestText)[restText] ?? encode(message);
    exchange.send(status, headerList.length === 0 ? type : [...type, ...headerList], body);
  };
}

/** Reads what a request says. No body at all is an empty one. */
function readRequest(
  exchange: Exchange,
  decoder: MessageDecoder,
  fields: PathFields,
  bodyLimit: number,
): Message | Promise<Message> {
  const query = exchange.query === "" ? noQuery : new URLSearchParams(exchange.query);
  if (bodyLimit === 0) {
    return decoder.decode({}, fields, query);
  }
  return exchange.readBody(bodyLimit).then((body) => {
    if (body.length === 0) {
      return decoder.decode({}, fields, query);
    }
    checkContentType(exchange);
    return decoder.decode(parseJson(body), fields, query);
  });
}

function checkContentType({ headers }: Exchange): void {
  const { "content-type": type = "", "content-encoding": encoding = "identity" } = headers;
  if (!/^application\/json\s*(;|$)/i.test(type) || encoding !== "identity") {
    throw new Problem(
      "unsupported_media_type",
      "Send the body as application/json, not compressed.",
    );
  }
}
