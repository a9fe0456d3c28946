import { setImmediate } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import {
  type AccessService,
  type CheckAccessRequest,
  CheckAccessRequestSchema,
  type CheckAccessResponse,
  CheckAccessResponseSchema,
  type WatchCredentialsRequest,
  WatchCredentialsRequestSchema,
  type WatchCredentialsResponse,
  WatchCredentialsResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";

/** A change stream whose messages are sent by the test. */
export interface FakeStream {
  readonly request: WatchCredentialsRequest;
  readonly signal: AbortSignal | undefined;
  send(message: StreamMessage): void;
  end(): void;
  fail(error: unknown): void;
}

interface StreamMessage {
  /** The applications that changed. */
  readonly changed?: readonly string[];
  readonly changes?: MessageInitShape<typeof WatchCredentialsResponseSchema>["changes"];
  readonly reset?: boolean;
  readonly token?: string;
  /** By the clock of the service. Absent if more messages follow. */
  readonly completeUntil?: number | undefined;
}

/** A check that waits for its response. */
export interface PendingCheck {
  readonly request: CheckAccessRequest;
  respond(response: MessageInitShape<typeof CheckAccessResponseSchema>): void;
  fail(error: unknown): void;
}

/** The methods that a guard calls, controlled by the test. */
export interface FakeService {
  readonly access: Pick<Client<typeof AccessService>, "checkAccess" | "watchCredentials">;
  /** All opened streams. */
  readonly streams: FakeStream[];
  /** All checks so far. */
  readonly checks: PendingCheck[];
}

export function createFakeService(): FakeService {
  const streams: FakeStream[] = [];
  const checks: PendingCheck[] = [];
  return {
    streams,
    checks,
    access: {
      checkAccess: (request) =>
        new Promise<CheckAccessResponse>((resolve, reject) => {
          checks.push({
            request: create(CheckAccessRequestSchema, request),
            respond: (response) => resolve(create(CheckAccessResponseSchema, response)),
            fail: reject,
          });
        }),

      watchCredentials(request, { signal } = {}) {
        const queue = createQueue<WatchCredentialsResponse>();
        signal?.addEventListener("abort", () => queue.fail(signal.reason));
        streams.push({
          request: create(WatchCredentialsRequestSchema, request),
          signal,
          send: (message) => queue.push(toResponse(message)),
          end: queue.end,
          fail: queue.fail,
        });
        // Like in the real client, leaving the loop does not close the stream.
        return { [Symbol.asyncIterator]: () => ({ next: queue.next }) };
      },
    },
  };
}

/** Waits until all ready callbacks have run. */
export async function settle(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

function toResponse(message: StreamMessage): WatchCredentialsResponse {
  const { changed = [], changes, reset = false, token = "a token", completeUntil } = message;
  const updates = changed.map((applicationId) => ({ kind: "updated", applicationId }));
  return create(WatchCredentialsResponseSchema, {
    changes: changes ?? updates,
    reset,
    resumeToken: token,
    ...(completeUntil !== undefined && { completeUntil: timestampFromMs(completeUntil) }),
  });
}

function createQueue<T>() {
  const waiting: (() => Promise<IteratorResult<T>>)[] = [];
  let wake: ((result: Promise<IteratorResult<T>>) => void) | undefined;

  function add(result: () => Promise<IteratorResult<T>>): void {
    if (wake) {
      wake(result());
      wake = undefined;
    } else {
      waiting.push(result);
    }
  }

  return {
    push: (value: T) => add(async () => ({ done: false, value })),
    end: () => add(async () => ({ done: true, value: undefined })),
    fail: (error: unknown) => add(() => Promise.reject(error)),
    next: () =>
      new Promise<IteratorResult<T>>((resolve) => {
        const next = waiting.shift();
        if (next) {
          resolve(next());
        } else {
          wake = resolve;
        }
      }),
  };
}
