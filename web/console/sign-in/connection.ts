import { type DescMethod, type DescService, getOption, toJsonString } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { createConnectTransport } from "@connectrpc/connect-web";
import { QueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { replayable } from "../../../gen/latchkey/v1/options_pb.js";
import { retryCalls, sendKey } from "../../../src/contract/client-interceptors.js";
import { idempotencyKeyHeader } from "../../../src/contract/headers.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { keyHeader } from "../../common/key-header.js";
import { callTimeoutMs, type Outage, retryDelayMs, setOutage } from "../ui/outage.js";
import { syncServiceClock } from "../ui/service-clock.js";
import { retryRateLimited } from "./retry-rate-limited.js";

export const serviceUrl = location.origin;

/** Longer waits are shown, and do not count towards the timeout of the call. */
const maxHiddenDelayMs = 1_000;

interface ConnectionOptions {
  readonly key: string;
  /** Called when the service refuses the key. */
  readonly onKeyRefused?: () => void;
}

/** A transport to the service of this page that sends the key. */
export function connect({ key, onKeyRefused }: ConnectionOptions): Transport {
  const options = { url: serviceUrl, key, keyHeader };
  return createConnectTransport({
    baseUrl: serviceUrl,
    useHttpGet: false,
    interceptors: [
      retryRateLimited(),
      watchCalls(onKeyRefused),
      reuseIdempotencyKeys(),
      retryCalls(undefined, maxHiddenDelayMs),
      sendKey(options),
    ],
  });
}

/**
 * Sends the same Idempotency-Key when a failed call is repeated. If the call was executed and only
 * its response was lost, the service returns that response instead of executing it twice.
 */
function reuseIdempotencyKeys(): Interceptor {
  const keys = new Map<string, string>();
  return (next) => async (request) => {
    if (request.stream || !getOption(request.method, replayable)) {
      return next(request);
    }
    const { method, message, header } = request;
    const call = `${method.name} ${toJsonString(method.input, message)}`;
    const key = keys.get(call);
    if (key !== undefined) {
      header.set(idempotencyKeyHeader, key);
    }
    try {
      const response = await next(request);
      keys.delete(call);
      return response;
    } catch (thrown) {
      keys.set(call, header.get(idempotencyKeyHeader) ?? "");
      throw thrown;
    }
  };
}

/** Watches whether calls and streams reach the service, and whether it accepts the key. */
function watchCalls(onKeyRefused: ConnectionOptions["onKeyRefused"]): Interceptor {
  function toReportedError(thrown: unknown, { signal, method }: WatchedCall): ConnectError {
    const reason = signal.aborted ? signal.reason : thrown;
    const error = ConnectError.from(reason);
    const outage = outageOf(error, reason);
    if (signal.aborted && outage === undefined) {
      return error;
    }
    setOutage(outage);
    if (error.code === Code.Unauthenticated) {
      onKeyRefused?.();
    }
    return outage === undefined || outage === "unavailable"
      ? error
      : unavailable(outage, method, error);
  }

  return (next) => async (request) => {
    const sentAt = Date.now();
    // Not `timeoutMs` of the transport: interceptors do not receive its error.
    const { method } = request;
    const signal = request.stream
      ? request.signal
      : AbortSignal.any([request.signal, AbortSignal.timeout(callTimeoutMs)]);
    try {
      const response = await next({ ...request, signal });
      setOutage(undefined);
      syncServiceClock(response.header, sentAt);
      return response.stream
        ? { ...response, message: watched(response.message, { signal, method }) }
        : response;
    } catch (thrown) {
      throw toReportedError(thrown, { signal, method });
    }
  };

  async function* watched<T>(messages: AsyncIterable<T>, call: WatchedCall): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (thrown) {
      throw toReportedError(thrown, call);
    }
  }
}

interface WatchedCall {
  readonly signal: AbortSignal;
  readonly method: DescMethod;
}

function outageOf(error: ConnectError, cause: unknown): Outage | undefined {
  if (cause instanceof DOMException && cause.name === "TimeoutError") {
    return "silent";
  }
  if (error.code === Code.Unavailable && problemOf(error).code !== undefined) {
    return "unavailable";
  }
  // Browsers report a failed fetch as a TypeError without details.
  const isUnreachable = error.cause instanceof TypeError || error.code === Code.Unavailable;
  return isUnreachable ? "unreachable" : undefined;
}

function unavailable(
  outage: "unreachable" | "silent",
  method: DescMethod,
  cause: ConnectError,
): ConnectError {
  const reason =
    outage === "silent"
      ? `The service did not respond within ${callTimeoutMs / 1_000} seconds.`
      : "The service cannot be reached.";
  const advice = isChange(method)
    ? "The change may have been made. If you try again with the same input, it is not made twice."
    : "Try again in a moment.";
  const message = `${reason} ${advice}`;
  return new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
}

/** All methods that change something can be repeated. */
function isChange(method: DescMethod): boolean {
  return (
    method.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENT ||
    getOption(method, replayable)
  );
}

/** The query cache of one sign-in. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        // Retries for as long as the service is unreachable.
        retry: (_failures, thrown) => ConnectError.from(thrown).code === Code.Unavailable,
        retryDelay: retryDelayMs,
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
}

/** A client without a cache: responses that contain a new key must not be stored. */
export function useClient<Service extends DescService>(service: Service): Client<Service> {
  const transport = useTransport();
  return useMemo(() => createClient(service, transport), [service, transport]);
}
