import { type Call, callKey } from "../auth/caller.js";
import { unreadable } from "../errors.js";
import type { Interceptor } from "./interceptor.js";

/** Turns decoding errors of stream messages into problems with a request id. */
export function createReadStreamInterceptor(bodyLimit: number): Interceptor {
  async function* readable<T>(messages: AsyncIterable<T>, { requestId }: Call) {
    try {
      yield* messages;
    } catch (reason) {
      const problem = unreadable(reason, bodyLimit);
      problem.describeFor(requestId);
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
