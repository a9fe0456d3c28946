import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { accessOf, callersOf } from "../contract/access.js";
import { ownErrorsOf } from "../contract/errors-of.js";
import type { Examples } from "../contract/examples.js";
import type { Facts } from "../contract/facts.js";
import { commentOf, listOf } from "../contract/prose.js";
import { type Block, codeOf, type Fact, heading, prose } from "./blocks.js";
import { referTo } from "./messages.js";

/** Describes a method, its access and its messages, with examples. */
export function describeMethod(facts: Facts, examples: Examples, method: DescMethod): Block[] {
  return [
    heading(3, method.name),
    ...prose(commentOf(method)),
    ...prose(accessOf(facts, method)),
    { kind: "facts", facts: factsOf(facts, method) },
    ...exampleOf("Example request", examples.request(method.input)),
    ...exampleOf("Example response", examples.response(method.output, facts.leavesOut(method))),
  ];
}

function factsOf(facts: Facts, method: DescMethod): Fact[] {
  const own = ownErrorsOf(facts, method).map(codeOf);
  const common = `the errors of [every ${isStream(method) ? "stream" : "call"}](#errors)`;
  return [
    ["Path", codeOf(`/${method.parent.typeName}/${method.name}`)],
    ["REST", restOf(facts, method)],
    ["Request", shapeOf(method, "input")],
    ["Response", shapeOf(method, "output") + withoutOf(facts, method)],
    ["Callers", listOf(callersOf(facts, method), "conjunction")],
    ...retryOf(facts, method),
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

function withoutOf(facts: Facts, method: DescMethod): string {
  const paths = facts.leavesOut(method).map(codeOf);
  return paths.length > 0 ? `, without ${listOf(paths, "conjunction")}` : "";
}

function restOf(facts: Facts, method: DescMethod): string {
  const http = facts.http(method);
  if (!http) {
    return "none";
  }
  const status = facts.httpStatus(method) ?? (isEmpty(method) ? 204 : 200);
  return `${codeOf(`${http.verb.toUpperCase()} ${http.path}`)}, status ${status}`;
}

/** Whether a call is safe to retry. */
function retryOf(facts: Facts, method: DescMethod): Fact[] {
  const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;
  const texts = [
    method.idempotency === NO_SIDE_EFFECTS ? "safe: the call changes nothing" : "",
    method.idempotency === IDEMPOTENT ? "safe: the call is idempotent" : "",
    facts.isReplayable(method)
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
