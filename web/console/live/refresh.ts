import { createConnectQueryKey } from "@connectrpc/connect-query";
import type { InfiniteData, QueryClient, QueryKey } from "@tanstack/react-query";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Event } from "../../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { applicationNames } from "../names/application-link.js";
import type { EventBatch } from "./event-feed.js";

/** Milliseconds between two rounds: where much happens, not every event is worth a call. */
const pause = 1_000;

const cardinality = undefined;
const applications = createConnectQueryKey({ schema: ApplicationService, cardinality });
const sessions = createConnectQueryKey({ schema: SessionService, cardinality });
const me = createConnectQueryKey({ schema: AccessService.method.whoAmI, cardinality });

/** Has what is shown asked for again when events tell that it has changed. */
interface QueryRefresher {
  after(batch: EventBatch): void;
  stop(): void;
}

export function createQueryRefresher(
  queries: QueryClient,
  { applicationId }: Pick<WhoAmIResponse, "applicationId">,
): QueryRefresher {
  const old = new Set<QueryKey>();
  let timer: ReturnType<typeof setTimeout> | undefined;

  function flush(): void {
    for (const queryKey of old) {
      // What is on its way would be given up, such as the next page of a list: that can wait.
      if (queries.isFetching({ queryKey }) === 0) {
        old.delete(queryKey);
        void queries.invalidateQueries({ queryKey, predicate: hasFewPages });
      }
    }
    timer = old.size > 0 ? setTimeout(flush, pause) : undefined;
  }

  return {
    after({ events, isReset }) {
      const made = isReset
        ? [applications, sessions, me, applicationNames]
        : events.flatMap((event) => queriesAffectedBy(event, applicationId));
      if (made.length === 0) {
        return;
      }
      for (const key of made) {
        old.add(key);
      }
      timer ??= setTimeout(flush, pause);
    },
    stop: () => clearTimeout(timer),
  };
}

function queriesAffectedBy({ kind, target }: Event, applicationId: string): QueryKey[] {
  const [about] = kind.split(".");
  if (about === "session") {
    return [sessions];
  }
  if (about === "access") {
    return [];
  }
  const isMine = target?.applicationId === applicationId;
  return [applications, sessions, applicationNames, ...(isMine ? [me] : [])];
}

/** A list of more pages is not asked for again as a whole, which takes a call for each of them. */
const maxRefetchedPages = 5;

/** Whether what was asked for may be asked for again by itself. */
export function hasFewPages({ state: { data } }: { readonly state: { readonly data?: unknown } }) {
  const { pages = [] } = (data ?? {}) as Partial<InfiniteData<unknown>>;
  return pages.length <= maxRefetchedPages;
}
