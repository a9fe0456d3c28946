import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Api, Key } from "../../support/api/api.js";
import {
  type CallRecorder,
  type Endpoint,
  type Outcome,
  unavailable,
} from "../support/call-recorder.js";
import type { RecordedCall } from "./record.js";

/** The outcome of a call after all its attempts. `unknown` if it may have taken effect. */
export interface Result<T> extends Pick<Outcome, "currentVersion"> {
  readonly value: T | undefined;
  /** `done`, the reason of an error, or `unknown`. */
  readonly result: string;
  readonly requestId: string;
  readonly call: RecordedCall;
}

export interface CallOptions {
  /** Repeats the call with an Idempotency-Key until its outcome is known. */
  readonly isIdempotent?: boolean;
  /** Repeats a read until it gets a response. */
  readonly isRepeated?: boolean;
  /** By default a random one that responds. */
  readonly endpoint?: Endpoint;
}

/** A client that makes one call after the other. */
export interface Client {
  call<T>(
    request: string,
    send: (api: Api, as: (key: string) => Key) => Promise<T>,
    options?: CallOptions,
  ): Promise<Result<T>>;
}

/** Results after which a change may or may not have been made. */
const unknownResults = [...unavailable, "lost", "hung", "shutting_down", "internal"];
/** Results after which nothing was changed, and the call can be repeated. */
const repeatableResults = ["idempotency_conflict", "overloaded"];
const isInconclusive = (result: string) =>
  unknownResults.includes(result) || repeatableResults.includes(result);

const retryInterval = 20;

interface ClientOptions {
  readonly recorder: CallRecorder;
  readonly endpoints: Endpoints;
}

/** The endpoints that respond. */
export interface Endpoints {
  /** Returns a random one that responds, as soon as there is one. */
  pick(): Promise<Endpoint>;
  /** Excludes an endpoint until it responds again. */
  exclude(endpoint: Endpoint): void;
  /** Waits before another attempt. Throws after `close`. */
  retryDelay(): Promise<void>;
  /** Stops waiting for endpoints that do not respond. */
  close(): void;
}

export function createEndpoints(
  recorder: CallRecorder,
  all: readonly Endpoint[],
  root: string,
  random: () => number,
): Endpoints {
  const excluded = new Set<Endpoint>();
  let isClosed = false;

  async function retryDelay(): Promise<void> {
    await delay(retryInterval);
    if (isClosed) {
      throw new Error("The load was stopped.");
    }
  }

  async function readmit(endpoint: Endpoint): Promise<void> {
    let result = "";
    while (result !== "done" && !isClosed) {
      await delay(retryInterval);
      ({ result } = await recorder.call(endpoint, "recovery", (api) => api.whoAmI(root)));
    }
    excluded.delete(endpoint);
  }

  return {
    retryDelay,

    async pick() {
      for (;;) {
        const responding = all.filter((endpoint) => !excluded.has(endpoint));
        const picked = responding[Math.floor(random() * responding.length)];
        if (picked) {
          return picked;
        }
        await retryDelay();
      }
    },

    exclude(endpoint) {
      if (!excluded.has(endpoint)) {
        excluded.add(endpoint);
        void readmit(endpoint);
      }
    },

    close() {
      isClosed = true;
    },
  };
}

export function createClient(name: string, { recorder, endpoints }: ClientOptions): Client {
  let count = 0;

  /** Sends a successful call again, which must return the same response and change nothing. */
  async function replay<T>(
    first: Outcome<T>,
    sendTo: (endpoint: Endpoint) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const again = first.result === "done" ? await sendTo(await endpoints.pick()) : first;
    return again.result === "done" ? again : first;
  }

  return {
    async call(request, send, { isIdempotent = false, isRepeated = false, endpoint } = {}) {
      const requestId = `${name}-${++count}`;
      const headers = {
        "x-request-id": requestId,
        ...(isIdempotent && { "idempotency-key": randomUUID() }),
      };
      const [operation = ""] = request.split(" ");
      const startedAt = performance.now();
      const sendTo = (endpoint: Endpoint) =>
        recorder.call(endpoint, operation, (api) => send(api, (key) => ({ key, headers })));
      let mayHaveTakenEffect = false;
      for (let attempt = 1; ; attempt++) {
        const used = endpoint ?? (await endpoints.pick());
        const outcome = await sendTo(used);
        if (unknownResults.includes(outcome.result)) {
          endpoints.exclude(used);
          mayHaveTakenEffect = true;
        }
        if ((isIdempotent || isRepeated) && isInconclusive(outcome.result)) {
          await endpoints.retryDelay();
          continue;
        }
        // A refusal of a later attempt does not show what an earlier one did.
        const isUnknown =
          isInconclusive(outcome.result) ||
          (isIdempotent && mayHaveTakenEffect && outcome.result !== "done");
        const { value, currentVersion } = isIdempotent ? await replay(outcome, sendTo) : outcome;
        return {
          result: isUnknown ? "unknown" : outcome.result,
          value,
          currentVersion,
          requestId,
          call: {
            client: name,
            endpoint: `${used.instance} ${used.protocol}`,
            request: `${request} [${requestId}]`,
            outcome: `${isUnknown ? "unknown: " : ""}${outcome.result}${attempt > 1 ? `, attempt ${attempt}` : ""}`,
            startedAt,
            endedAt: outcome.endedAt,
            isUnknown,
          },
        };
      }
    },
  };
}
