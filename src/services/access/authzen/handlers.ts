import type { ServiceImpl } from "@connectrpc/connect";
import { CheckAccessRequestSchema } from "../../../../gen/latchkey/v1/access_service_pb.js";
import {
  type AuthZenService,
  type EvaluateRequest,
  EvaluateRequestSchema,
} from "../../../../gen/latchkey/v1/authzen_service_pb.js";
import type { Caller } from "../../../auth/caller.js";
import { callerOf, callOf } from "../../../call.js";
import type { Dependencies } from "../../../dependencies.js";
import { Problem } from "../../../errors.js";
import { mapMaybePromise } from "../../../lib/async.js";
import { assertValidMessage, validateMessage } from "../../../validation/validate.js";
import type { CheckResult } from "../check.js";
import { completeCheck, toCheck, toDecision, withDefaults } from "./mapping.js";
import { createActionSearch, createSubjectSearch } from "./search.js";

/** Creates the AuthZEN API, which maps its requests to access checks. */
export function createAuthZenHandlers({
  store,
  checks,
  principals,
  runBatch,
  createSealer,
}: Pick<
  Dependencies,
  "store" | "checks" | "principals" | "runBatch" | "createSealer"
>): ServiceImpl<typeof AuthZenService> {
  function evaluate(caller: Caller, request: EvaluateRequest) {
    const check = toCheck(request);
    const problem = validateMessage(CheckAccessRequestSchema, check);
    return problem
      ? toRefusal(problem)
      : mapMaybePromise(checks.evaluateWithPrincipal(caller, check), ({ result }) =>
          result instanceof Problem ? toRefusal(result) : toDecision(result),
        );
  }

  return {
    evaluate: (request, context) => evaluate(callerOf(context), request),

    async batchEvaluate(request, context) {
      const call = callOf(context);
      if (request.evaluations.length === 0) {
        const single = withDefaults({}, request);
        assertValidMessage(EvaluateRequestSchema, single);
        return evaluate(call.caller, single);
      }
      const isLast = decidingResults.get(request.options?.evaluationsSemantic ?? "");
      const results = await runBatch(
        call,
        "evaluations",
        request.evaluations,
        (evaluation) => completeCheck(evaluation, request),
        isLast,
      );
      return { evaluations: results.map(toDecision) };
    },

    searchSubjects: createSubjectSearch({ store, runBatch, createSealer }),

    searchActions: createActionSearch({ principals, runBatch }),
  };
}

/** The decision about an evaluation that is not a valid check. */
function toRefusal({ problemCode, rawMessage }: Problem) {
  return toDecision({ allowed: false, reason: problemCode, detail: rawMessage });
}

/** The semantics that stop at a result, and that result. */
const decidingResults: ReadonlyMap<string, (result: CheckResult) => boolean> = new Map([
  ["deny_on_first_deny", ({ allowed }) => !allowed],
  ["permit_on_first_permit", ({ allowed }) => allowed],
]);
