import { type Call, callKey } from "../auth/caller.js";
import { toDecodeProblem } from "../errors.js";
import type { Interceptor } from "./interceptor.js";

/** Turns decoding errors of stream messages into problems with a request id. */
export function createStreamErrorsInterceptor(bodyLimit: number): Interceptor {
  async function* readable<T>(messages: AsyncIterable<T>, { requestId }: Call) {
    try {
      yield* messages;
    } catch (reason) {
      const problem = toDecodeProblem(reason, bodyLimit);
      problem.attachDetails(requestId);
      throw problem;
    }
  }

  return (next) => (request) =>
    next(
      request.stream
        ? {
            ...request,
            message: readable(request.message, request.contextValues.get(callKey)),
          }
        : request,
    );
}
