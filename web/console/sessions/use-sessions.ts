import { createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import {
  type LoadedSessions,
  nothingLoaded,
  pageSize,
  refreshSessions,
} from "./loaded-sessions.js";

export interface SessionFilter {
  readonly applicationId?: string | undefined;
  readonly authorizedBy?: string | undefined;
  readonly state?: string | undefined;
}

/** Opening a session records no event, so the list is also read at intervals. */
const refreshMs = 3_000;

/** The open sessions, newest first. */
export function useSessions({ applicationId, authorizedBy, state }: SessionFilter) {
  const transport = useTransport();
  const client = useClient(SessionService);
  const queries = useQueryClient();
  const visible = useRef<readonly [number, number]>([0, 0]);
  const request = {
    size: pageSize,
    includeTotal: true,
    ...(applicationId !== undefined && { applicationId }),
    ...(authorizedBy !== undefined && { authorizedBy }),
    ...(state !== undefined && { state }),
  };
  const queryKey = createConnectQueryKey({
    schema: SessionService.method.listSessions,
    input: request,
    transport,
    cardinality: "infinite",
  });
  const { data, error, isPlaceholderData, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) =>
      refreshSessions(queries.getQueryData<LoadedSessions>(queryKey) ?? nothingLoaded, {
        visible: visible.current,
        fetchPage: (start) =>
          client.listSessions({ ...request, ...(start !== undefined && { start }) }, { signal }),
      }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
    // Rows are compared by their ids.
    structuralSharing: false,
  });
  const { sessions, total, limit = pageSize, hasMore = false } = data ?? {};
  return {
    sessions,
    total,
    error,
    isPlaceholderData,
    hasNextPage: hasMore,
    isFetchingNextPage: hasMore && (sessions?.length ?? 0) < limit,
    async fetchNextPage() {
      // A running refresh has the old limit.
      await queries.cancelQueries({ queryKey });
      queries.setQueryData<LoadedSessions>(
        queryKey,
        (now) => now && { ...now, limit: now.limit + pageSize },
      );
      await refetch();
    },
    /** The rows to keep up to date. */
    setVisible(first: number, last: number) {
      visible.current = [first, last];
    },
  };
}
