import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

export const grpcMessage = "grpc-message";

/**
 * The protocol library percent-encodes more of an error's message than gRPC
 * asks for, and some clients decode only what gRPC asks for. The trailers are
 * filled while the body is sent, so they are looked at when they are read.
 */
export function withReadableMessage(answer: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = answer;
  if (!trailer) {
    return answer;
  }
  return {
    ...answer,
    get trailer() {
      const message = trailer.get(grpcMessage);
      if (message) {
        trailer.set(grpcMessage, encodeMessage(decodeURIComponent(message)));
      }
      return trailer;
    },
  };
}

/** Leaves printable ASCII as it is, but for the percent sign. */
export function encodeMessage(message: string): string {
  return message.replace(/[^ -$&-~]+/g, encodeURIComponent);
}
