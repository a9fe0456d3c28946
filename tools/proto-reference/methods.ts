import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { accessOf, callersOf } from "../contract/access.js";
import { ownErrorsOf, problemType, refusalsOf } from "../contract/catalogue.js";
import type { Contract } from "../contract/contract.js";
import type { Examples } from "../contract/examples.js";
import { commentOf, listOf } from "../contract/prose.js";
import { type Block, codeOf, heading, linkTo, type Property, prose } from "./blocks.js";
import { referTo } from "./messages.js";

/** Describes a method, its access and its messages, with examples. */
export function describeMethod(
  contract: Contract,
  examples: Examples,
  method: DescMethod,
): Block[] {
  return [
    heading(3, method.name),
    ...prose(commentOf(method)),
    ...prose(accessOf(contract, method)),
    { kind: "properties", properties: propertiesOf(contract, method) },
    ...exampleOf("Example request", examples.request(method.input)),
    ...exampleOf("Example response", examples.response(method.output, contract.leavesOut(method))),
  ];
}

function propertiesOf(contract: Contract, method: DescMethod): Property[] {
  const own = ownErrorsOf(contract, method).map(codeOf);
  const common = `the errors of [every ${isStream(method) ? "stream" : "call"}](#errors)`;
  return [
    ["Path", codeOf(`/${method.parent.typeName}/${method.name}`)],
    ["REST", restOf(contract, method)],
    ["Request", shapeOf(method, "input")],
    ["Response", shapeOf(method, "output") + withoutOf(contract, method)],
    ["Callers", listOf(callersOf(contract, method), "conjunction")],
    ...retryOf(contract, method),
    ["Errors", listOf([...own, common], "conjunction")],
  ];
}

export function isStream({ methodKind }: DescMethod): boolean {
  return methodKind !== "unary";
}

function shapeOf(method: DescMethod, way: "input" | "output"): string {
  const streams = way === "input" ? ["client_streaming"] : ["server_streaming"];
  const isOne = ![...streams, "bidi_streaming"].includes(method.methodKind);
  return (isOne ? "" : "a stream of ") + referTo(method[way]);
}

function withoutOf(contract: Contract, method: DescMethod): string {
  const paths = contract.leavesOut(method).map(codeOf);
  return paths.length > 0 ? `, without ${listOf(paths, "conjunction")}` : "";
}

function restOf(contract: Contract, method: DescMethod): string {
  const http = contract.http(method);
  if (!http) {
    return "none";
  }
  const status = contract.httpStatus(method) ?? (isEmpty(method) ? 204 : 200);
  return `${codeOf(`${http.verb.toUpperCase()} ${http.path}`)}, status ${status}`;
}

/** Whether a call is safe to retry. */
function retryOf(contract: Contract, method: DescMethod): Property[] {
  const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;
  const texts = [
    method.idempotency === NO_SIDE_EFFECTS ? "safe: the call changes nothing" : "",
    method.idempotency === IDEMPOTENT ? "safe: the call is idempotent" : "",
    contract.isReplayable(method)
      ? "safe with the same `Idempotency-Key`: the service returns the first response again"
      : "",
  ].filter((text) => text !== "");
  return texts.length > 0 ? [["Retries", texts.join("; ")]] : [];
}

function isEmpty({ output }: DescMethod): boolean {
  return output.fields.length === 0;
}

function exampleOf(title: string, example: JsonObject): Block[] {
  return Object.keys(example).length > 0
    ? [{ kind: "example", title, json: JSON.stringify(example, null, 2) }]
    : [];
}

const beforeTheCall = ["invalid_request", "body_too_large", "rate_limited", "overloaded"];
const duringTheCall = ["store_unavailable", "deadline_exceeded", "internal"];
const ofStreams = ["too_many_streams", "shutting_down"];

/** Lists every error with the methods that return it. */
export function describeErrors(contract: Contract, methods: readonly DescMethod[]): Block {
  const byCode = new Map<string, DescMethod[]>();
  for (const method of methods) {
    for (const code of errorsOf(contract, method)) {
      byCode.set(code, [...(byCode.get(code) ?? []), method]);
    }
  }
  return {
    kind: "table",
    head: ["Code", "gRPC", "REST", "Cause", "Methods"],
    rows: Array.from(byCode, ([code, having]) => {
      const { status, grpc, when } = problemType(code);
      return [codeOf(code), grpcName(grpc), String(status), when, whereOf(having, methods)];
    }),
  };
}

function errorsOf(contract: Contract, method: DescMethod): string[] {
  return [
    ...beforeTheCall,
    ...refusalsOf(contract, method),
    ...ownErrorsOf(contract, method),
    ...(isStream(method) ? ofStreams : []),
    ...duringTheCall,
  ];
}

function whereOf(having: readonly DescMethod[], methods: readonly DescMethod[]): string {
  if (having.length === methods.length) {
    return "every call";
  }
  if (having.every(isStream) && methods.filter(isStream).length === having.length) {
    return "every stream";
  }
  const others = methods.filter((method) => !having.includes(method));
  return others.length < having.length ? `all except ${namesOf(others)}` : namesOf(having);
}

function namesOf(methods: readonly DescMethod[]): string {
  return methods.map(({ name }) => linkTo(name)).join(", ");
}

/** The gRPC spelling of a code. */
function grpcName(code: Code): string {
  return (Code[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
