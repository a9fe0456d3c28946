import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { longestSilence, nextPause, shortestPause } from "../../../src/lib/reconnect.js";

/** Milliseconds after which the service says something where nothing happens. */
const heartbeat = 2_000;

/** What happened, in its order. */
export interface EventBatch {
  readonly events: readonly Event[];
  /** Whether something may have happened before that was not told. */
  readonly isReset: boolean;
}

export type FeedState = "off" | "connecting" | "live" | "lost";

interface EventFeedOptions {
  readonly transport: Transport;
  onBatch(batch: EventBatch): void;
  onState(state: FeedState): void;
  /** Called when the service says that the key may not watch. */
  onRefused(): void;
}

/**
 * Follows what happens in the tenant until it is stopped, with one stream at a
 * time that goes on where the one before it broke off. A page that nobody looks
 * at has none: browsers have few connections for all tabs together.
 */
export function startEventFeed(options: EventFeedOptions): () => void {
  const { transport, onBatch, onState, onRefused } = options;
  const client = createClient(EventService, transport);
  const closing = new AbortController();
  let resumeToken: string | undefined;
  let pause = shortestPause;

  async function follow(signal: AbortSignal, onMessage: () => void): Promise<void> {
    let isNew = resumeToken === undefined;
    const request = { heartbeatMs: heartbeat, ...(resumeToken !== undefined && { resumeToken }) };
    for await (const message of client.watchEvents(request, { signal, timeoutMs: 0 })) {
      onMessage();
      ({ resumeToken } = message);
      pause = shortestPause;
      onState("live");
      if (isNew || message.reset || message.events.length > 0) {
        onBatch({ events: message.events, isReset: isNew || message.reset });
      }
      isNew = false;
    }
  }

  function recover(error: ConnectError): void {
    if (error.code === Code.InvalidArgument) {
      // The token is of other data than the service has now.
      resumeToken = undefined;
    }
    if (error.code === Code.PermissionDenied) {
      onRefused();
    }
  }

  async function run(): Promise<void> {
    onState("connecting");
    while (!closing.signal.aborted) {
      await untilShown(closing.signal);
      const stream = createStreamSignal(closing.signal);
      try {
        await follow(stream.signal, stream.heard);
      } catch (thrown) {
        recover(ConnectError.from(thrown));
      } finally {
        stream.end();
      }
      if (!closing.signal.aborted) {
        onState("lost");
        await wait(pause, closing.signal);
        pause = nextPause(pause);
      }
    }
  }

  void run();
  return () => closing.abort();
}

/** Ends a stream when the feed is stopped, nothing is heard for too long, or nobody looks at the page. */
function createStreamSignal(closing: AbortSignal) {
  const stream = new AbortController();
  const abort = () => stream.abort();
  const abortIfHidden = () => document.hidden && abort();
  let silence = setTimeout(abort, longestSilence(heartbeat));
  closing.addEventListener("abort", abort);
  document.addEventListener("visibilitychange", abortIfHidden);
  return {
    signal: stream.signal,
    heard(): void {
      clearTimeout(silence);
      silence = setTimeout(abort, longestSilence(heartbeat));
    },
    end(): void {
      clearTimeout(silence);
      closing.removeEventListener("abort", abort);
      document.removeEventListener("visibilitychange", abortIfHidden);
    },
  };
}

function wait(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    }
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener("abort", end);
  });
}

/** Resolves when the person looks at the page, or the signal is given. */
function untilShown(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const settle = () => {
      if (!document.hidden || signal.aborted) {
        document.removeEventListener("visibilitychange", settle);
        signal.removeEventListener("abort", settle);
        resolve();
      }
    };
    document.addEventListener("visibilitychange", settle);
    signal.addEventListener("abort", settle);
  });
}
