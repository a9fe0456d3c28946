import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { CursorSealer, CursorSealerFactory } from "../auth/cursor-sealing.js";
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
        // The observe step reports canceled calls.
        return undefined;
      }
      return reason === stopping.reason ? shuttingDown() : reason;
    });
}

/** The default heartbeat interval of watch streams in milliseconds. */
const defaultHeartbeat = 500;

/** The heartbeat interval of a watch stream in milliseconds. */
export function heartbeatOf({ heartbeat }: { readonly heartbeat?: Duration | undefined }): number {
  return heartbeat ? durationMs(heartbeat) : defaultHeartbeat;
}

type Feed = "credentials" | "events";

/** Creates the resume tokens of a watch stream. */
export function createResumeTokens(createSealer: CursorSealerFactory, feed: Feed): CursorSealer {
  return createSealer({
    purpose: `resume token of ${feed}`,
    field: "resume_token",
    refusal:
      "is not a valid resume token of this service and tenant: " +
      "pass the resume_token of an earlier message, or omit it to watch from now",
    startAgain: "omit it to watch from now",
  });
}
