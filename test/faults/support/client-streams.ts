import { setTimeout as delay } from "node:timers/promises";
import { durationFromMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { WatchCredentialsResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { ApiFailure, StreamingApi } from "../../support/api/api.js";
import type { StreamedCheck } from "../../support/api/checks.js";
import { createRequestStream } from "../../support/api/streams.js";

/** An access check stream that stays open between requests. */
interface CheckStream {
  /** Returns a result for each key, or the error that ended the stream as the last one. */
  check(keys: readonly string[], permission: string): Promise<readonly (boolean | string)[]>;
  close(): void;
}

export function openCheckStream(api: StreamingApi, key: string): CheckStream {
  const controller = new AbortController();
  const requests = createRequestStream<StreamedCheck>();
  const responses = api.streamCheckAccess(key, requests, controller.signal)[Symbol.asyncIterator]();

  async function next(): Promise<boolean | string> {
    try {
      const { done, value } = await responses.next();
      return done ? "ended without a reason" : (value.result?.allowed ?? "no result");
    } catch (failure) {
      return (failure as ApiFailure).reason;
    }
  }

  return {
    async check(keys, permission) {
      requests.send(...keys.map((key) => ({ check: { key, permission } })));
      const results: (boolean | string)[] = [];
      while (results.length < keys.length && typeof (results.at(-1) ?? true) === "boolean") {
        results.push(await next());
      }
      return results;
    },

    close: () => controller.abort(),
  };
}

/** The credential changes that a watcher of a tenant receives, across reconnects. */
interface ChangeWatch {
  /** Whether a revocation for an application or its sessions was delivered, directly or by a reset. */
  hasDelivered(applicationId: string): boolean;
  /** Whether the stream claimed to be complete past a revocation before it delivered it. */
  hasMissed(applicationId: string, revokedAt: number): boolean;
  /** The number of messages so far. */
  messages(): number;
  /** The reasons why streams ended. */
  readonly errors: readonly string[];
  stop(): Promise<void>;
}

const heartbeat = durationFromMs(200);

/** Watches credential changes, and resumes when a stream ends. */
export function watchChanges(api: StreamingApi, key: string): ChangeWatch {
  const controller = new AbortController();
  const { signal } = controller;
  const errors: string[] = [];
  /** By application: the completeness claimed before its first change, by `performance.now()`. */
  const completeBefore = new Map<string, number>();
  let completeUntil = 0;
  let count = 0;
  let wasReset = false;
  let resumeToken: string | undefined;

  function record(message: WatchCredentialsResponse): void {
    count++;
    resumeToken = message.resumeToken;
    wasReset ||= message.reset;
    for (const { applicationId } of message.changes) {
      if (!completeBefore.has(applicationId)) {
        completeBefore.set(applicationId, completeUntil);
      }
    }
  }

  async function watchOnce(): Promise<void> {
    const openedAt = performance.now();
    let first: Timestamp | undefined;
    const request = { heartbeat, ...(resumeToken !== undefined && { resumeToken }) };
    for await (const message of api.watchCredentials(key, request, signal)) {
      record(message);
      const { completeUntil: until } = message;
      if (until) {
        first ??= until;
        // The first timestamp is not before the stream was opened, so this is never too late.
        completeUntil = openedAt + timestampMs(until) - timestampMs(first);
      }
    }
  }

  const watching = (async () => {
    while (!signal.aborted) {
      await watchOnce().then(
        () => errors.push("ended without a reason"),
        (failure: ApiFailure) => errors.push(failure.reason),
      );
      await delay(100);
    }
  })();

  return {
    errors,
    messages: () => count,
    hasDelivered: (applicationId) => wasReset || completeBefore.has(applicationId),
    hasMissed: (applicationId, revokedAt) =>
      (completeBefore.get(applicationId) ?? completeUntil) > revokedAt,

    async stop() {
      controller.abort();
      await watching;
    },
  };
}
