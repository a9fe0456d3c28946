import type { DescService } from "@bufbuild/protobuf";
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
import { useMemo, useSyncExternalStore } from "react";
import { retryCalls, sendKey } from "../../../src/contract/client-interceptors.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { keyHeader } from "../../common/key-header.js";

export const serviceUrl = location.origin;

/** A dead connection reports no error, so calls need a timeout. */
const callTimeoutMs = 20_000;

interface ConnectionOptions {
  readonly key: string;
  /** Called when the service refuses the key. */
  readonly onKeyRefused?: () => void;
  /** Called after each call with whether it reached the service. */
  readonly onReachable?: (isReachable: boolean) => void;
}

/** A transport to the service of this page that sends the key. */
export function connect({ key, ...watchers }: ConnectionOptions): Transport {
  const options = { url: serviceUrl, key, keyHeader };
  return createConnectTransport({
    baseUrl: serviceUrl,
    useHttpGet: false,
    defaultTimeoutMs: callTimeoutMs,
    interceptors: [watchCalls(watchers), retryCalls(), sendKey(options)],
  });
}

type Watchers = Omit<ConnectionOptions, "key">;

/** Reports whether calls and streams reach the service, and whether it accepts the key. */
function watchCalls({ onKeyRefused, onReachable }: Watchers): Interceptor {
  function toReportedError(thrown: unknown, { signal }: { readonly signal: AbortSignal }) {
    const error = ConnectError.from(thrown);
    if (signal.aborted && error.code === Code.Canceled) {
      return error;
    }
    const isLost = isUnreachable(error);
    onReachable?.(!isLost);
    if (error.code === Code.Unauthenticated) {
      onKeyRefused?.();
    }
    return isLost && problemOf(error).code === undefined ? unreachable(error) : error;
  }

  return (next) => async (request) => {
    const sentAt = Date.now();
    try {
      const response = await next(request);
      onReachable?.(true);
      syncServiceClock(response.header, sentAt);
      return response.stream
        ? { ...response, message: watched(response.message, request) }
        : response;
    } catch (thrown) {
      throw toReportedError(thrown, request);
    }
  };

  async function* watched<T>(
    messages: AsyncIterable<T>,
    request: { readonly signal: AbortSignal },
  ): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (thrown) {
      throw toReportedError(thrown, request);
    }
  }
}

/** Whether a call did not reach the service, or the service is unavailable. */
function isUnreachable(error: ConnectError): boolean {
  const isTimeout = error.code === Code.DeadlineExceeded && problemOf(error).code === undefined;
  // Browsers report a failed fetch as a TypeError without details.
  return error.cause instanceof TypeError || error.code === Code.Unavailable || isTimeout;
}

function unreachable(cause: ConnectError): ConnectError {
  return new ConnectError(
    "The service cannot be reached. Try again in a moment.",
    Code.Unavailable,
    undefined,
    undefined,
    cause,
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

/** Delay between retries while the service is unreachable. */
export const retryDelayMs = 2_000;

let isReachable = true;
const listeners = new Set<() => void>();

/** Records whether the last call reached the service. */
export function setReachable(now: boolean): void {
  if (now !== isReachable) {
    isReachable = now;
    for (const listener of listeners) {
      listener();
    }
  }
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useIsReachable(): boolean {
  return useSyncExternalStore(listen, () => isReachable);
}

/** Shown while the service is unreachable. */
export function OfflineNotice() {
  const isUp = useIsReachable();
  return (
    <div role="status" className="offline-notice" data-shown={!isUp}>
      {isUp ? null : "The service cannot be reached. Retrying…"}
    </div>
  );
}

let clockOffset = 0;

/**
 * Reads the clock of the service from the Date header, because the local clock may differ. The
 * header has whole seconds, so it only limits the offset.
 */
function syncServiceClock(headers: Headers, sentAt: number): void {
  const date = Date.parse(headers.get("date") ?? "");
  if (!Number.isNaN(date)) {
    const [min, max] = [date - Date.now(), date + 1_000 - sentAt];
    clockOffset = Math.min(Math.max(clockOffset, min), max);
  }
}

/** The current time of the service, accurate to about a second. */
export function serviceNow(): number {
  return Date.now() + clockOffset;
}
