import { setTimeout as delay } from "node:timers/promises";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { WatchCredentialsResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { ApiFailure, StreamingApi } from "../../support/api/api.js";

/** What one who watches a tenant is told, over as many streams as it takes. */
interface ToldChanges {
  /** Whether it is known that something has ended an application, or a session of it. */
  knows(applicationId: string): boolean;
  /** Whether it was told, without a word of such an end, that nothing is missing up to a moment after it. */
  wasMisled(applicationId: string, endedAt: number): boolean;
  /** How many messages came so far. */
  messages(): number;
  /** Why streams ended. */
  readonly ends: readonly string[];
  stop(): Promise<void>;
}

const heartbeatMs = 200;

/** Watches, and goes on from where it was when a stream ends. */
export function followChanges(api: StreamingApi, key: string): ToldChanges {
  const leaving = new AbortController();
  const { signal } = leaving;
  const ends: string[] = [];
  /** Up to when all was told before each end was, as `performance.now()` tells time. */
  const toldBefore = new Map<string, number>();
  let completeUntil = 0;
  let count = 0;
  let mustForget = false;
  let resumeToken: string | undefined;

  function hear(message: WatchCredentialsResponse): void {
    count++;
    resumeToken = message.resumeToken;
    mustForget ||= message.reset;
    for (const { applicationId } of message.changes) {
      if (!toldBefore.has(applicationId)) {
        toldBefore.set(applicationId, completeUntil);
      }
    }
  }

  async function watchOnce(): Promise<void> {
    const openedAt = performance.now();
    let first: Timestamp | undefined;
    const request = { heartbeatMs, ...(resumeToken !== undefined && { resumeToken }) };
    for await (const message of api.watchCredentials(key, request, signal)) {
      hear(message);
      const { completeUntil: until } = message;
      if (until) {
        first ??= until;
        // The first is of no moment before the opening, so this is never too late.
        completeUntil = openedAt + timestampMs(until) - timestampMs(first);
      }
    }
  }

  const watching = (async () => {
    while (!signal.aborted) {
      await watchOnce().then(
        () => ends.push("ended without a reason"),
        (failure: ApiFailure) => ends.push(failure.reason),
      );
      await delay(100);
    }
  })();

  return {
    ends,
    messages: () => count,
    knows: (applicationId) => mustForget || toldBefore.has(applicationId),
    wasMisled: (applicationId, endedAt) =>
      (toldBefore.get(applicationId) ?? completeUntil) > endedAt,

    async stop() {
      leaving.abort();
      await watching;
    },
  };
}
