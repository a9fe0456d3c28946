import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useMemo } from "react";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useLiveState } from "../live/live.js";
import { isShort } from "../live/short-lists.js";

export interface SessionFilter {
  readonly applicationId?: string | undefined;
  readonly authorizedBy?: string | undefined;
  readonly state?: string | undefined;
}

const size = 50;

/** Milliseconds between two looks at the list: where news come by themselves, only to be sure. */
const pauses = { live: 30_000, alone: 3_000 };

/** The sessions that have not ended, newest first, as they are now. */
export function useSessions({ applicationId, authorizedBy, state }: SessionFilter) {
  const pause = useLiveState() === "live" ? pauses.live : pauses.alone;
  const { data, ...query } = useInfiniteQuery(
    SessionService.method.listSessions,
    {
      size,
      start: undefined,
      ...(applicationId !== undefined && { applicationId }),
      ...(authorizedBy !== undefined && { authorizedBy }),
      ...(state !== undefined && { state }),
    },
    {
      pageParamKey: "start",
      getNextPageParam: ({ pagination }) => pagination?.next,
      refetchInterval: (query) => isShort(query) && pause,
      placeholderData: keepPreviousData,
    },
  );
  const sessions = useMemo(() => data?.pages.flatMap((page) => page.data), [data]);
  return { ...query, sessions };
}
