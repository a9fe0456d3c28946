import { setTimeout as delay } from "node:timers/promises";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { isGoodForMore, longestSilence, nextPause, shortestPause } from "../lib/reconnect.js";
import { type ChangeListeners, createHeardChanges, type HeardChanges } from "./change-tracker.js";

/** Hears of changes from the service, and knows up to when it has heard of all of them. */
export interface CredentialWatch {
  /** The moment, by `now`, up to which no change is missing. */
  completeUntil(): number;

  /** How much was heard so far, for {@link changedSince}. */
  epoch(): number;

  /** Whether something was heard since that may make an answer about these subjects wrong. */
  changedSince(epoch: number, subjects: readonly (string | undefined)[]): boolean;

  /** Opens the stream anew. Until it is open nothing counts as complete. */
  reopen(): void;

  /** Resolves when it hears from the service for the first time, or is closed. */
  ready(): Promise<void>;

  close(): Promise<void>;
}

interface CredentialWatchOptions extends ChangeListeners {
  readonly access: Pick<Client<typeof AccessService>, "watchCredentials">;
  /** Milliseconds within which the service is to be heard from. */
  readonly heartbeat: number;
  /** Called where nothing is heard for so long that the connection may be dead. */
  readonly onSilence?: () => void;
  /** Called each time that the stream breaks. */
  readonly onError?: ((error: ConnectError) => void) | undefined;
  /** Tells time in milliseconds, and only forward. */
  readonly now: () => number;
  /** How to wait between streams, for tests. It resolves early where the signal is given. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/** Starts to watch, and goes on until it is closed. */
export function startCredentialWatch(options: CredentialWatchOptions): CredentialWatch {
  const heard = createHeardChanges(options);
  const streams = startStreams(options, heard);
  return {
    completeUntil: heard.complete.until,
    epoch: heard.memory.count,
    changedSince: heard.memory.since,
    ready: () => heard.complete.ready.promise,

    reopen() {
      heard.memory.addAll();
      heard.complete.forget();
      streams.reopen();
    },

    async close() {
      heard.complete.forget();
      const ended = streams.close();
      heard.complete.ready.resolve();
      await ended;
    },
  };
}

/** Why a stream ends that did not break. */
const reopening = new ConnectError("The stream is opened anew.", Code.Canceled);

/** Follows one stream after the other, and goes on until it is closed. */
function startStreams(options: CredentialWatchOptions, heard: HeardChanges) {
  const { sleep = sleepLightly } = options;
  const closing = new AbortController();
  let stream = new AbortController();
  let pause = shortestPause;

  function recover(error: ConnectError): void {
    if (error.code === Code.InvalidArgument) {
      // The token is of other data than the service has now.
      heard.forgetResumeToken();
    }
    if (!closing.signal.aborted && stream.signal.reason !== reopening) {
      report(error, options.onError);
    }
  }

  function onProgress(): void {
    pause = shortestPause;
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      stream = new AbortController();
      try {
        await follow({ ...options, heard, stream, onProgress });
      } catch (thrown) {
        recover(ConnectError.from(thrown));
      }
      await sleep(pause * (0.5 + Math.random()), closing.signal);
      pause = nextPause(pause);
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

interface Following
  extends Pick<CredentialWatchOptions, "access" | "heartbeat" | "now" | "onSilence"> {
  readonly heard: HeardChanges;
  /** What the stream is given up by. */
  readonly stream: AbortController;
  /** Called where more comes than a first message, which may come from streams that break at once too. */
  readonly onProgress: () => void;
}

/** Hears a stream out, until it ends or it is time for a new one. */
async function follow(following: Following): Promise<void> {
  const { access, heartbeat, now, heard, stream, onProgress } = following;
  const opened = now();
  const reach = createReach(opened);
  const { signal } = stream;
  const silence = startSilenceTimer(following);
  const resumeToken = heard.resumeToken();
  let count = 0;
  try {
    const request = { heartbeatMs: heartbeat, ...(resumeToken && { resumeToken }) };
    for await (const message of access.watchCredentials(request, { signal })) {
      if (signal.aborted) {
        return;
      }
      silence.refresh();
      count++;
      if (count === 1 && !resumeToken) {
        heard.reset();
      } else if (count > 1) {
        onProgress();
      }
      heard.take(message);
      if (message.completeUntil) {
        const reached = reach(message.completeUntil);
        const present = now();
        heard.complete.advance(reached, present);
        if (!isGoodForMore({ present, opened, reached, heartbeat })) {
          return;
        }
      }
    }
  } finally {
    clearTimeout(silence);
    // A stream that is no longer read does not end by itself.
    stream.abort();
  }
}

/** Gives up the stream when the timer was not refreshed for a while. */
function startSilenceTimer({ heartbeat, stream, onSilence }: Following): NodeJS.Timeout {
  const limit = longestSilence(heartbeat);
  const silent = `Nothing was heard from the service for ${limit} milliseconds.`;
  return setTimeout(() => {
    stream.abort(new ConnectError(silent, Code.DeadlineExceeded));
    onSilence?.();
  }, limit);
}

function report(error: ConnectError, onError: CredentialWatchOptions["onError"]): void {
  try {
    onError?.(error);
  } catch {
    // Who listens must not end the watch.
  }
}

/** Does not keep the process from ending. */
function sleepLightly(milliseconds: number, signal: AbortSignal): Promise<void> {
  return delay(milliseconds, undefined, { signal, ref: false }).catch(() => {});
}

/** By how much the clocks of two machines drift apart at most, as a part of the time. */
const worstDrift = 0.001;

/**
 * Tells how far the messages of a stream reach, by our own clock. The first
 * was sent after the stream was opened, so nothing from before that is
 * missing; how much later the others are, the clock of the service tells. When
 * they arrive tells nothing: they may have waited on the way.
 */
function createReach(opened: number): (completeUntil: Timestamp) => number {
  let first: number | undefined;
  return (completeUntil) => {
    const moment = timestampMs(completeUntil);
    // Moments are rounded down, and so may lie apart by up to a millisecond less than it seems.
    first ??= moment + 1;
    return opened + (moment - first) * (1 - worstDrift);
  };
}
