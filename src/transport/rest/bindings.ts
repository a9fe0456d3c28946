import { type DescMethod, type DescMethodUnary, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import type { RestFormat } from "../../../gen/latchkey/v1/options_pb.js";
import { restFormatOf, statusOf } from "../../contract/methods.js";
import { parseTemplate, type Segment } from "./router.js";

/** The REST binding of a method, from its `google.api.http` option. */
export interface Binding {
  readonly method: DescMethodUnary;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** Whether fields outside the path are in the body instead of the query. */
  readonly hasBody: boolean;
  /** Whether the body is a merge patch. */
  readonly isPatch: boolean;
  readonly status: number;
  readonly format: RestFormat;
}

/** Reads the bindings of a method. Throws if one is not supported. */
export function readBindings(method: DescMethod): Binding[] {
  if (!hasOption(method, http)) {
    return [];
  }
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].map(({ pattern, body }) => {
    if (method.methodKind !== "unary" || pattern.case === undefined || !["", "*"].includes(body)) {
      throw new Error(`${method} has an unsupported REST binding`);
    }
    return {
      method: method as DescMethodUnary,
      verb: pattern.case.toUpperCase(),
      segments: parseTemplate(pattern.value),
      hasBody: body === "*",
      isPatch: pattern.case === "patch",
      status: statusOf(method),
      format: restFormatOf(method),
    };
  });
}
