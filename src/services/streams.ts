import type { HandlerContext } from "@connectrpc/connect";
import { shuttingDown } from "../errors.js";
import { linkAbortSignals } from "../lib/iterators.js";

/** Opens a stream that ends with its call, and when the server stops. */
type OpenStream = <T>(
  context: Pick<HandlerContext, "signal">,
  open: (signal: AbortSignal) => AsyncIterable<T>,
) => AsyncIterable<T>;

export function createOpenStream(stopping: AbortSignal): OpenStream {
  return ({ signal }, open) =>
    linkAbortSignals(signal, stopping, open, (reason) => {
      if (reason === signal.reason) {
        // A call that was given up is told of where calls are observed.
        return undefined;
      }
      return reason === stopping.reason ? shuttingDown() : reason;
    });
}

/** How often those who watch are told that nothing happened, in milliseconds, where they do not say. */
export const defaultHeartbeat = 500;
