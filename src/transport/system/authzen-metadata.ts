import { AuthZenService } from "../../../gen/latchkey/v1/authzen_service_pb.js";
import { routeOf } from "../../contract/methods.js";

/** The metadata of the AuthZEN API, which clients discover. Searches that are not listed are not supported. */
export function createAuthZenMetadata(publicUrl: string): string {
  const { evaluate, batchEvaluate, searchSubjects, searchActions } = AuthZenService.method;
  return JSON.stringify({
    policy_decision_point: publicUrl,
    access_evaluation_endpoint: `${publicUrl}${routeOf(evaluate)}`,
    access_evaluations_endpoint: `${publicUrl}${routeOf(batchEvaluate)}`,
    search_subject_endpoint: `${publicUrl}${routeOf(searchSubjects)}`,
    search_action_endpoint: `${publicUrl}${routeOf(searchActions)}`,
  });
}
