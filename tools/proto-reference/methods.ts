import type { DescMethod, JsonValue } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { describeAccess, getCallers } from "../contract/access.js";
import { getAuthErrors, getMethodErrors, problemType } from "../contract/catalogue.js";
import type { Contract } from "../contract/contract.js";
import type { Examples } from "../contract/examples.js";
import { formatList, getComment } from "../contract/prose.js";
import { type Block, heading, inlineCode, linkTo, type Property, prose } from "./blocks.js";
import { referTo } from "./messages.js";

/** Describes a method, its access and its messages, with examples. */
export function describeMethod(
  contract: Contract,
  examples: Examples,
  method: DescMethod,
): Block[] {
  return [
    heading(3, method.name),
    ...prose(getComment(method)),
    ...prose(describeAccess(contract, method)),
    { kind: "properties", properties: describeProperties(contract, method) },
    ...createExample("Example request", createRequestExample(contract, examples, method)),
    ...createExample("Example response", createResponseExample(contract, examples, method)),
  ];
}

function describeProperties(contract: Contract, method: DescMethod): Property[] {
  const own = getMethodErrors(contract, method).map(linkToError);
  const common = `the errors of [every ${isStream(method) ? "stream" : "call"}](#errors)`;
  return [
    ["Path", inlineCode(`/${method.parent.typeName}/${method.name}`)],
    ["REST", describeRest(contract, method)],
    ["Request", describeMessageType(method, "input")],
    ["Response", describeMessageType(method, "output") + describeOmitted(contract, method)],
    ["Callers", formatList(getCallers(contract, method), "conjunction") || "anyone"],
    ...describeRetries(contract, method),
    ["Errors", formatList([...own, common], "conjunction")],
  ];
}

export function isStream({ methodKind }: DescMethod): boolean {
  return methodKind !== "unary";
}

function describeMessageType(method: DescMethod, side: "input" | "output"): string {
  const streaming = side === "input" ? "client_streaming" : "server_streaming";
  const isStreamed = method.methodKind === streaming || method.methodKind === "bidi_streaming";
  return (isStreamed ? "a stream of " : "") + referTo(method[side]);
}

function describeOmitted(contract: Contract, method: DescMethod): string {
  const paths = contract.omittedFields(method).map(inlineCode);
  return paths.length > 0 ? `, without ${formatList(paths, "conjunction")}` : "";
}

function describeRest(contract: Contract, method: DescMethod): string {
  const bindings = contract.http(method);
  if (bindings.length === 0) {
    return "none";
  }
  const paths = bindings.map(({ verb, path }) => inlineCode(`${verb.toUpperCase()} ${path}`));
  const status = contract.httpStatus(method) ?? 200;
  return `${formatList(paths, "disjunction")}, status ${status}`;
}

/** Whether a call is safe to retry. */
function describeRetries(contract: Contract, method: DescMethod): Property[] {
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

function createRequestExample(
  contract: Contract,
  examples: Examples,
  method: DescMethod,
): JsonValue {
  const items = contract.rawItems(method, "input");
  return items ? examples.items(items) : examples.request(method.input);
}

function createResponseExample(
  contract: Contract,
  examples: Examples,
  method: DescMethod,
): JsonValue {
  const items = contract.rawItems(method, "output");
  return items ? examples.items(items) : examples.response(method);
}

function createExample(title: string, example: JsonValue): Block[] {
  return Object.keys(Object(example)).length > 0
    ? [{ kind: "example", title, json: JSON.stringify(example, null, 2) }]
    : [];
}

const errorsBeforeCall = ["invalid_request", "body_too_large", "rate_limited", "overloaded"];
const errorsDuringCall = ["store_unavailable", "deadline_exceeded", "internal"];
const streamErrors = ["too_many_streams", "shutting_down"];

/** Lists every error with the methods that return it. */
export function describeErrors(contract: Contract, methods: readonly DescMethod[]): Block {
  const byCode = new Map<string, DescMethod[]>();
  for (const method of methods) {
    for (const code of listErrors(contract, method)) {
      byCode.set(code, [...(byCode.get(code) ?? []), method]);
    }
  }
  return {
    kind: "table",
    head: ["Code", "gRPC", "REST", "Cause", "Methods"],
    rows: Array.from(byCode, ([code, returning]) => {
      const { status, grpc, cause } = problemType(code);
      return [
        linkToError(code),
        grpcName(grpc),
        String(status),
        cause,
        describeMethods(returning, methods),
      ];
    }),
  };
}

function listErrors(contract: Contract, method: DescMethod): string[] {
  return [
    ...errorsBeforeCall,
    ...getAuthErrors(contract, method),
    ...getMethodErrors(contract, method),
    ...(isStream(method) ? streamErrors : []),
    ...errorsDuringCall,
  ];
}

function describeMethods(returning: readonly DescMethod[], methods: readonly DescMethod[]): string {
  if (returning.length === methods.length) {
    return "every call";
  }
  if (returning.every(isStream) && methods.filter(isStream).length === returning.length) {
    return "every stream";
  }
  const others = methods.filter((method) => !returning.includes(method));
  return others.length < returning.length
    ? `all except ${linkMethods(others)}`
    : linkMethods(returning);
}

function linkMethods(methods: readonly DescMethod[]): string {
  return methods.map(({ name }) => linkTo(name)).join(", ");
}

function linkToError(code: string): string {
  return `[${inlineCode(code)}](../docs/reference/errors.md#${code})`;
}

/** The gRPC spelling of a code. */
function grpcName(code: Code): string {
  return (Code[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
