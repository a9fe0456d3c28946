import { createConnectQueryKey } from "@connectrpc/connect-query";
import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { OverviewService } from "../../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { applicationNames } from "../applications/application-names.js";
import type { EventBatch } from "./event-feed.js";

/** Limits the refetches when there are many events. */
const minRefreshIntervalMs = 1_000;

const cardinality = undefined;
const applications = createConnectQueryKey({ schema: ApplicationService, cardinality });
const sessions = createConnectQueryKey({ schema: SessionService, cardinality });
const overview = createConnectQueryKey({ schema: OverviewService, cardinality });
// Only recent activity. The activity page appends events itself.
const recentEvents = createConnectQueryKey({ schema: EventService, cardinality: "finite" });
const me = createConnectQueryKey({ schema: AccessService.method.whoAmI, cardinality });

/** Refetches queries that events affect. */
interface QueryRefresher {
  after(batch: EventBatch): void;
  stop(): void;
}

export function createQueryRefresher(
  queries: QueryClient,
  { applicationId }: Pick<WhoAmIResponse, "applicationId">,
): QueryRefresher {
  const stale = new Set<QueryKey>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    for (const queryKey of stale) {
      // Invalidation would cancel a running fetch, such as the next page of a list.
      if (queries.isFetching({ queryKey }) === 0) {
        stale.delete(queryKey);
        void queries.invalidateQueries({ queryKey, predicate: hasFewPages });
      }
    }
    timer = stale.size > 0 ? setTimeout(flush, minRefreshIntervalMs) : undefined;
  }

  return {
    after({ events, isReset }) {
      const affected = isReset
        ? [applications, sessions, overview, recentEvents, me, applicationNames]
        : events.flatMap((event) => queriesAffectedBy(event, applicationId));
      if (affected.length === 0) {
        return;
      }
      for (const key of affected) {
        stale.add(key);
      }
      timer ??= setTimeout(flush, minRefreshIntervalMs);
    },
    stop: () => clearTimeout(timer),
  };
}

function queriesAffectedBy({ kind, target }: Event, applicationId: string): QueryKey[] {
  const [prefix] = kind.split(".");
  if (prefix === "session") {
    return [sessions, overview, recentEvents];
  }
  if (prefix === "access") {
    return [recentEvents];
  }
  const isOwn = target?.applicationId === applicationId;
  const own = isOwn ? [me] : [];
  return [applications, sessions, overview, recentEvents, applicationNames, ...own];
}

/** Longer lists are not refetched: each page takes a call. */
const maxRefetchedPages = 5;

function hasFewPages({ state: { data } }: { readonly state: { readonly data?: unknown } }) {
  const { pages = [] } = (data ?? {}) as Partial<InfiniteData<unknown>>;
  return pages.length <= maxRefetchedPages;
}
