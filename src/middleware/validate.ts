import type { DescMessage, Message } from "@bufbuild/protobuf";
import { checkRequest } from "../validation/validate.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./interceptor.js";

/**
 * Validates messages against the constraints in their proto. Handlers of client
 * streams validate each message themselves, so that an invalid one does not end
 * the stream.
 */
export function createValidateInterceptor(itemLimit: number): Interceptor {
  return (next) => (request) => {
    const { input, methodKind } = request.method;
    if (!request.stream) {
      const checking = checkRequest(input, request.message, itemLimit);
      return checking ? Promise.resolve(checking).then(() => next(request)) : next(request);
    }
    return methodKind === "server_streaming"
      ? next(withMessage(request, checkEach(input, request.message, itemLimit)))
      : next(request);
  };
}

async function* checkEach(
  schema: DescMessage,
  messages: AsyncIterable<Message>,
  itemLimit: number,
) {
  for await (const message of messages) {
    await checkRequest(schema, message, itemLimit);
    yield message;
  }
}
