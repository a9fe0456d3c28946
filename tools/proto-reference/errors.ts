import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { problemType } from "../contract/catalogue.js";
import { ownErrorsOf, refusalsOf } from "../contract/errors-of.js";
import type { Facts } from "../contract/facts.js";
import { type Block, codeOf, linkTo } from "./blocks.js";
import { isStream } from "./methods.js";

const beforeTheCall = ["invalid_request", "body_too_large", "rate_limited", "overloaded"];
const duringTheCall = ["store_unavailable", "deadline_exceeded", "internal"];
const ofStreams = ["too_many_streams", "shutting_down"];

/** Lists every error with the methods that return it. */
export function describeErrors(facts: Facts, methods: readonly DescMethod[]): Block {
  const byCode = new Map<string, DescMethod[]>();
  for (const method of methods) {
    for (const code of errorsOf(facts, method)) {
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

function errorsOf(facts: Facts, method: DescMethod): string[] {
  return [
    ...beforeTheCall,
    ...refusalsOf(facts, method),
    ...ownErrorsOf(facts, method),
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
