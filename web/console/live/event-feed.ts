import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import {
  minReconnectDelay,
  nextReconnectDelay,
  silenceTimeout,
} from "../../../src/contract/reconnect.js";

/** The heartbeat interval of the stream. */
const heartbeat = 2_000;

export interface EventBatch {
  readonly events: readonly Event[];
  /** Whether events may have been missed. */
  readonly isReset: boolean;
}

export type FeedState = "off" | "connecting" | "live" | "lost";

interface EventFeedOptions {
  readonly transport: Transport;
  onBatch(batch: EventBatch): void;
  onState(state: FeedState): void;
  /** Called when the key has no permission to watch events. */
  onRefused(): void;
}

/**
 * Watches the events of the tenant with one stream that resumes after errors.
 * Hidden pages have no stream: browsers limit the connections of all tabs.
 */
export function startEventFeed(options: EventFeedOptions): () => void {
  const { transport, onBatch, onState, onRefused } = options;
  const client = createClient(EventService, transport);
  const closing = new AbortController();
  let resumeToken: string | undefined;
  let reconnectDelay = minReconnectDelay;

  async function follow(signal: AbortSignal, onMessage: () => void): Promise<void> {
    let isNew = resumeToken === undefined;
    const request = {
      heartbeat: durationFromMs(heartbeat),
      ...(resumeToken !== undefined && { resumeToken }),
    };
    for await (const message of client.watchEvents(request, { signal, timeoutMs: 0 })) {
      onMessage();
      ({ resumeToken } = message);
      reconnectDelay = minReconnectDelay;
      onState("live");
      if (isNew || message.reset || message.events.length > 0) {
        onBatch({ events: message.events, isReset: isNew || message.reset });
      }
      isNew = false;
    }
  }

  function recover(error: ConnectError): void {
    if (error.code === Code.InvalidArgument) {
      // The resume token belongs to other data.
      resumeToken = undefined;
    }
    if (error.code === Code.PermissionDenied) {
      onRefused();
    }
  }

  async function run(): Promise<void> {
    onState("connecting");
    while (!closing.signal.aborted) {
      await untilVisible(closing.signal);
      const stream = createStreamSignal(closing.signal);
      try {
        await follow(stream.signal, stream.onMessage);
      } catch (thrown) {
        recover(ConnectError.from(thrown));
      } finally {
        stream.end();
      }
      if (!closing.signal.aborted) {
        onState("lost");
        await wait(reconnectDelay, closing.signal);
        reconnectDelay = nextReconnectDelay(reconnectDelay);
      }
    }
  }

  void run();
  return () => closing.abort();
}

/** Aborts a stream when the feed is closed, the heartbeat is missing, or the page is hidden. */
function createStreamSignal(closing: AbortSignal) {
  const stream = new AbortController();
  const abort = () => stream.abort();
  const abortIfHidden = () => document.hidden && abort();
  const timeOut = () => stream.abort(new DOMException("No heartbeat.", "TimeoutError"));
  let silence = setTimeout(timeOut, silenceTimeout(heartbeat));
  closing.addEventListener("abort", abort);
  document.addEventListener("visibilitychange", abortIfHidden);
  return {
    signal: stream.signal,
    onMessage(): void {
      clearTimeout(silence);
      silence = setTimeout(timeOut, silenceTimeout(heartbeat));
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

/** Resolves when the page is visible or the signal aborts. */
function untilVisible(signal: AbortSignal): Promise<void> {
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
