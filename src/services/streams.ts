import type { HandlerContext } from "@connectrpc/connect";
import { shuttingDown } from "../errors.js";
import { linkAbortSignals } from "../lib/async.js";

/** Opens a stream that ends when its call ends or the server stops. */
type OpenStream = <T>(
  context: Pick<HandlerContext, "signal">,
  open: (signal: AbortSignal) => AsyncIterable<T>,
) => AsyncIterable<T>;

export function createOpenStream(stopping: AbortSignal): OpenStream {
  return ({ signal }, open) =>
    linkAbortSignals(signal, stopping, open, (reason) => {
      if (reason === signal.reason) {
        // The observe interceptor reports canceled calls.
        return undefined;
      }
      return reason === stopping.reason ? shuttingDown() : reason;
    });
}

/** The default heartbeat interval of watch streams in milliseconds. */
export const defaultHeartbeat = 500;
