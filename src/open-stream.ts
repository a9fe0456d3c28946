import type { HandlerContext } from "@connectrpc/connect";
import { shuttingDown } from "./errors.js";
import { untilEither } from "./until-either.js";

/** Opens a stream that ends with its call, and when the server stops. */
export type OpenStream = <T>(
  context: Pick<HandlerContext, "signal">,
  open: (signal: AbortSignal) => AsyncIterable<T>,
) => AsyncIterable<T>;

export function createOpenStream(stopping: AbortSignal): OpenStream {
  return ({ signal }, open) =>
    untilEither(signal, stopping, open, (reason) => {
      if (reason === signal.reason) {
        // A call that was given up is told of where calls are observed.
        return undefined;
      }
      return reason === stopping.reason ? shuttingDown() : reason;
    });
}
