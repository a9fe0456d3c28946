import { setTimeout as delay } from "node:timers/promises";
import { durationFromMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import {
  canKeepStream,
  minReconnectDelay,
  nextReconnectDelay,
  silenceTimeout,
} from "../contract/reconnect.js";
import { type ChangeListeners, type ChangeTracker, createChangeTracker } from "./change-tracker.js";

/** Receives changes of credentials, and tracks up to when none is missing. */
export interface CredentialWatch {
  /** The time, by `now`, up to which no change is missing. */
  completeUntil(): number;

  /** The number of changes so far, for {@link changedSince}. */
  epoch(): number;

  /** Whether one of these principals may have changed since. */
  changedSince(epoch: number, principalIds: readonly (string | undefined)[]): boolean;

  /** Opens a new stream. Nothing counts as complete until it is open. */
  reopen(): void;

  /** Resolves after the first complete message of the service, or when closed. Rejects if the service refuses the key. */
  ready(): Promise<void>;

  close(): Promise<void>;
}

interface CredentialWatchOptions extends ChangeListeners {
  readonly access: Pick<Client<typeof AccessService>, "watchCredentials">;
  /** Milliseconds between messages of the service. */
  readonly heartbeat: number;
  /** Called after such a long silence that the connection may be dead. */
  readonly onSilence?: () => void;
  /** Called each time that the stream fails. */
  readonly onError?: ((error: ConnectError) => void) | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Waits between streams; replaced in tests. Resolves early if the signal is aborted. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export function startCredentialWatch(options: CredentialWatchOptions): CredentialWatch {
  const tracker = createChangeTracker(options);
  const streams = startStreams(options, tracker);
  return {
    completeUntil: tracker.completeness.until,
    epoch: tracker.recent.count,
    changedSince: tracker.recent.changedSince,
    ready: tracker.completeness.ready.wait,

    reopen() {
      tracker.recent.addAll();
      tracker.completeness.clear();
      streams.reopen();
    },

    async close() {
      tracker.completeness.clear();
      const closed = streams.close();
      tracker.completeness.ready.resolve();
      await closed;
    },
  };
}

/** The abort reason of a stream that did not fail. */
const reopening = new ConnectError("The stream is reopened.", Code.Canceled);

/** Opens one stream after the other until closed. */
function startStreams(options: CredentialWatchOptions, tracker: ChangeTracker) {
  const { sleep = sleepUnreferenced } = options;
  const closing = new AbortController();
  let stream = new AbortController();
  let pause = minReconnectDelay;

  function handleError(error: ConnectError): void {
    if (error.code === Code.InvalidArgument) {
      // The resume token is from another data set.
      tracker.clearResumeToken();
    }
    if (error.code === Code.Unauthenticated || error.code === Code.PermissionDenied) {
      tracker.completeness.ready.reject(error);
    }
    if (!closing.signal.aborted && stream.signal.reason !== reopening) {
      report(error, options.onError);
    }
  }

  function onProgress(): void {
    pause = minReconnectDelay;
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      stream = new AbortController();
      try {
        await readStream({ ...options, tracker, stream, onProgress });
      } catch (thrown) {
        handleError(ConnectError.from(thrown));
      }
      await sleep(pause * (0.5 + Math.random()), closing.signal);
      pause = nextReconnectDelay(pause);
    }
  }

  const running = run();
  return {
    reopen: () => stream.abort(reopening),

    close(): Promise<void> {
      closing.abort();
      stream.abort(reopening);
      return running;
    },
  };
}

interface StreamOptions
  extends Pick<CredentialWatchOptions, "access" | "heartbeat" | "now" | "onSilence"> {
  readonly tracker: ChangeTracker;
  /** Aborts the stream. */
  readonly stream: AbortController;
  /** Called after the second message: streams that fail at once may send a first one. */
  readonly onProgress: () => void;
}

/** Reads a stream until it ends or must be reopened. */
async function readStream(options: StreamOptions): Promise<void> {
  const { access, heartbeat, now, tracker, stream, onProgress } = options;
  const opened = now();
  const toLocalTime = createTimeMapping(opened);
  const { signal } = stream;
  const silence = startSilenceTimer(options);
  const resumeToken = tracker.resumeToken();
  let count = 0;
  try {
    const request = {
      heartbeat: durationFromMs(heartbeat),
      ...(resumeToken && { resumeToken }),
    };
    for await (const message of access.watchCredentials(request, { signal })) {
      if (signal.aborted) {
        return;
      }
      silence.refresh();
      count++;
      if (count === 1 && !resumeToken) {
        tracker.reset();
      } else if (count > 1) {
        onProgress();
      }
      tracker.apply(message);
      if (message.completeUntil) {
        const reached = toLocalTime(message.completeUntil);
        const current = now();
        tracker.completeness.advance(reached, current);
        if (!canKeepStream({ now: current, opened, reached, heartbeat })) {
          return;
        }
      }
    }
  } finally {
    clearTimeout(silence);
    // A stream that is no longer read stays open otherwise.
    stream.abort();
  }
}

/** Aborts the stream unless the timer is refreshed in time. */
function startSilenceTimer({ heartbeat, stream, onSilence }: StreamOptions): NodeJS.Timeout {
  const limit = silenceTimeout(heartbeat);
  const message = `No message from the service for ${limit} milliseconds.`;
  return setTimeout(() => {
    stream.abort(new ConnectError(message, Code.DeadlineExceeded));
    onSilence?.();
  }, limit);
}

function report(error: ConnectError, onError: CredentialWatchOptions["onError"]): void {
  try {
    onError?.(error);
  } catch {
    // A listener must not stop the watch.
  }
}

/** Does not keep the process alive. */
function sleepUnreferenced(milliseconds: number, signal: AbortSignal): Promise<void> {
  return delay(milliseconds, undefined, { signal, ref: false }).catch(() => {});
}

/** The maximum drift between the clocks of two machines. */
const maxDrift = 0.001;

/**
 * Maps times of the service to our clock. The first message was sent after the
 * stream was opened, so no earlier change is missing. Later messages are placed
 * by the clock of the service, not by their arrival: they may have been delayed.
 */
function createTimeMapping(opened: number): (completeUntil: Timestamp) => number {
  let first: number | undefined;
  return (completeUntil) => {
    const time = timestampMs(completeUntil);
    // Times are rounded down, so the distance may be up to a millisecond shorter.
    first ??= time + 1;
    return opened + (time - first) * (1 - maxDrift);
  };
}
