import { type DescMethod, type DescMethodUnary, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { statusOf } from "../../contract.js";
import { parseTemplate, type Segment } from "./template.js";

/** Where a method is served over REST, as its proto says. */
export interface Binding {
  readonly method: DescMethodUnary;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** Whether the fields that are not in the path come from the body, and not from the query. */
  readonly hasBody: boolean;
  /** The status of a successful answer. */
  readonly status: number;
}

/** Reads the binding of a method, if it has one. A binding that cannot be served throws. */
export function readBinding(method: DescMethod): Binding | undefined {
  if (!hasOption(method, http)) {
    return undefined;
  }
  const { pattern, body } = getOption(method, http);
  if (method.methodKind !== "unary" || pattern.case === undefined || !["", "*"].includes(body)) {
    throw new Error(`${method} has a REST binding that cannot be served`);
  }
  return {
    method: method as DescMethodUnary,
    verb: pattern.case.toUpperCase(),
    segments: parseTemplate(pattern.value),
    hasBody: body === "*",
    status: statusOf(method),
  };
}
