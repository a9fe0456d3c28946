import type { DescMessage, Message } from "@bufbuild/protobuf";
import { checkItems, checkMessage } from "../validation.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./with-message.js";

/**
 * Refuses messages that break the rules written in their proto. Where a caller
 * sends many in one stream, the handler checks each of them, so that one bad
 * message does not end the stream.
 */
export function createValidateInterceptor(itemLimit: number): Interceptor {
  return (next) => (request) => {
    const { input, methodKind } = request.method;
    if (!request.stream) {
      checkItems(input, request.message, itemLimit);
      checkMessage(input, request.message);
    } else if (methodKind === "server_streaming") {
      return next(withMessage(request, checkEach(input, request.message)));
    }
    return next(request);
  };
}

async function* checkEach(schema: DescMessage, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    checkMessage(schema, message);
    yield message;
  }
}
