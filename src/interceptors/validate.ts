import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { checkMessage } from "../validation.js";

/** Refuses messages that break the rules written in their proto. */
export function createValidateInterceptor(): Interceptor {
  return (next) => async (request) => {
    const { input } = request.method;
    if (request.stream) {
      return next({ ...request, message: checkEach(input, request.message) });
    }
    checkMessage(input, request.message);
    return next(request);
  };
}

async function* checkEach(schema: DescMessage, messages: AsyncIterable<Message>) {
  for await (const message of messages) {
    checkMessage(schema, message);
    yield message;
  }
}
