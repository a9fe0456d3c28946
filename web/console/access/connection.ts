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
import { useMemo } from "react";
import { retryLost, sendKey } from "../../../src/contract/client-interceptors.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import { keyHeader } from "../../common/key-header.js";
import { retryDelayMs } from "./reachability.js";
import { syncServiceClock } from "./service-clock.js";

export const serviceUrl = location.origin;

/** After so many milliseconds a call counts as lost: a connection may be dead without a word. */
const callTimeoutMs = 20_000;

interface ConnectionOptions {
  readonly key: string;
  /** Called when the service says that the key does not work any more. */
  readonly onKeyRefused?: () => void;
  /** Called with each call: whether it reached the service. */
  readonly onReachable?: (isReachable: boolean) => void;
}

/** Calls the service that this page came from, with the key of the person. */
export function connect({ key, ...watchers }: ConnectionOptions): Transport {
  const options = { url: serviceUrl, key, keyHeader };
  return createConnectTransport({
    baseUrl: serviceUrl,
    useHttpGet: false,
    defaultTimeoutMs: callTimeoutMs,
    interceptors: [watchCalls(watchers), retryLost(), sendKey(options)],
  });
}

type Watchers = Omit<ConnectionOptions, "key">;

/** Tells what calls show of the service and of the key, streams also while they last. */
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
    return isLost && problemOf(error).code === undefined ? lost(error) : error;
  }

  return (next) => async (request) => {
    try {
      const answer = await next(request);
      onReachable?.(true);
      syncServiceClock(answer.header);
      return answer.stream ? { ...answer, message: watched(answer.message, request) } : answer;
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

/** Whether a call did not come through, or came to a service that cannot do its work now. */
function isUnreachable(error: ConnectError): boolean {
  const isGivenUp = error.code === Code.DeadlineExceeded && problemOf(error).code === undefined;
  // Browsers say nothing more of a call that did not come through.
  return error.cause instanceof TypeError || error.code === Code.Unavailable || isGivenUp;
}

function lost(cause: ConnectError): ConnectError {
  return new ConnectError(
    "The service cannot be reached. Try again in a moment.",
    Code.Unavailable,
    undefined,
    undefined,
    cause,
  );
}

/** What came of calls, for one visit: nothing of it outlives a sign-out. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        // It is asked again while the service is away, however long that is.
        retry: (_failures, thrown) => ConnectError.from(thrown).code === Code.Unavailable,
        retryDelay: retryDelayMs,
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
}

/**
 * Calls a service with the key of the person. Unlike those of a query, its
 * answers are kept nowhere, which those that hold a new key must not be.
 */
export function useClient<Service extends DescService>(service: Service): Client<Service> {
  const transport = useTransport();
  return useMemo(() => createClient(service, transport), [service, transport]);
}
