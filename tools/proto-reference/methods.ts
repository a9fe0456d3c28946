import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { accessOf, callersOf } from "../contract/access.js";
import { ownErrorsOf } from "../contract/errors-of.js";
import type { Examples } from "../contract/examples.js";
import type { Facts } from "../contract/facts.js";
import { commentOf, listOf } from "../contract/prose.js";
import { type Block, codeOf, type Fact, heading, prose } from "./blocks.js";
import { referTo } from "./messages.js";

/** What a method does, who may call it and how, with an example. */
export function describeMethod(facts: Facts, examples: Examples, method: DescMethod): Block[] {
  return [
    heading(3, method.name),
    ...prose(commentOf(method)),
    ...prose(accessOf(facts, method)),
    { kind: "facts", facts: factsOf(facts, method) },
    ...exampleOf("A request", examples.request(method.input)),
    ...exampleOf("An answer", examples.answer(method.output, facts.leavesOut(method))),
  ];
}

function factsOf(facts: Facts, method: DescMethod): Fact[] {
  const own = ownErrorsOf(facts, method).map(codeOf);
  const everyones = `those of [every ${isStream(method) ? "stream" : "call"}](#errors)`;
  return [
    ["Path", codeOf(`/${method.parent.typeName}/${method.name}`)],
    ["REST", restOf(facts, method)],
    ["Takes", shapeOf(method, "input")],
    ["Answers", shapeOf(method, "output") + withoutOf(facts, method)],
    ["Callers", listOf(callersOf(facts, method), "conjunction")],
    ...againOf(facts, method),
    ["Errors", listOf([...own, everyones], "conjunction")],
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
  return `${codeOf(`${http.verb.toUpperCase()} ${http.path}`)}, answered with ${status}`;
}

/** Whether a call can be sent again by those who do not know whether it was made. */
function againOf(facts: Facts, method: DescMethod): Fact[] {
  const { NO_SIDE_EFFECTS, IDEMPOTENT } = MethodOptions_IdempotencyLevel;
  const texts = [
    method.idempotency === NO_SIDE_EFFECTS ? "changes nothing" : "",
    method.idempotency === IDEMPOTENT ? "made twice it does no more than made once" : "",
    facts.isReplayable(method)
      ? "with the same `Idempotency-Key` it is answered as the first time"
      : "",
  ].filter((text) => text !== "");
  return texts.length > 0 ? [["Sent again", texts.join("; ")]] : [];
}

function isEmpty({ output }: DescMethod): boolean {
  return output.fields.length === 0;
}

function exampleOf(title: string, example: JsonObject): Block[] {
  return Object.keys(example).length > 0
    ? [{ kind: "example", title, json: JSON.stringify(example, null, 2) }]
    : [];
}
