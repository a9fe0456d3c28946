import { Code, ConnectError } from "@connectrpc/connect";
import { QueryClient } from "@tanstack/react-query";
import { pauseWhileAway } from "./reach.js";

/** What came of calls, for one visit: nothing of it outlives a sign-out. */
export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: true,
        // It is asked again while the service is away, however long that is.
        retry: (_failures, thrown) => ConnectError.from(thrown).code === Code.Unavailable,
        retryDelay: pauseWhileAway,
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
}
