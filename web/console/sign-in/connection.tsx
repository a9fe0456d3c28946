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
export const callTimeoutMs = 10_000;

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
    interceptors: [watchCalls(onKeyRefused), retryCalls(), sendKey(options)],
  });
}

/** Watches whether calls and streams reach the service, and whether it accepts the key. */
function watchCalls(onKeyRefused: ConnectionOptions["onKeyRefused"]): Interceptor {
  function toReportedError(thrown: unknown, signal: AbortSignal): ConnectError {
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
    return outage === undefined || outage === "unavailable" ? error : unavailable(outage, error);
  }

  return (next) => async (request) => {
    const sentAt = Date.now();
    // The error of a timeout of the transport could not be changed here.
    const signal = request.stream
      ? request.signal
      : AbortSignal.any([request.signal, AbortSignal.timeout(callTimeoutMs)]);
    try {
      const response = await next({ ...request, signal });
      setOutage(undefined);
      syncServiceClock(response.header, sentAt);
      return response.stream
        ? { ...response, message: watched(response.message, signal) }
        : response;
    } catch (thrown) {
      throw toReportedError(thrown, signal);
    }
  };

  async function* watched<T>(messages: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
    try {
      yield* messages;
    } catch (thrown) {
      throw toReportedError(thrown, signal);
    }
  }
}

/** Why calls fail: no connection, no response, or a response that says so, such as an overload. */
type Outage = "unreachable" | "silent" | "unavailable";

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

function unavailable(outage: "unreachable" | "silent", cause: ConnectError): ConnectError {
  const reason =
    outage === "silent"
      ? `The service did not respond within ${callTimeoutMs / 1_000} seconds.`
      : "The service cannot be reached.";
  const message = `${reason} Try again in a moment.`;
  return new ConnectError(message, Code.Unavailable, undefined, undefined, cause);
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

let outage: Outage | undefined;
const listeners = new Set<() => void>();

/** Records whether the last call reached the service. */
export function setOutage(now: Outage | undefined): void {
  if (now !== outage) {
    outage = now;
    for (const listener of listeners) {
      listener();
    }
  }
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useOutage(): Outage | undefined {
  return useSyncExternalStore(listen, () => outage);
}

/** Shown while the service is unavailable. */
export function OutageNotice() {
  const current = useOutage();
  return (
    <div role="status" className="outage-notice" data-shown={current !== undefined}>
      {current === "unreachable" && "The service cannot be reached. Retrying…"}
      {current === "silent" && "The service does not respond. Retrying…"}
      {current === "unavailable" && "The service is busy, or its store does not respond. Retrying…"}
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
