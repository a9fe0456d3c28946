import { useTransport } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Badge } from "../ui/display.js";
import { type EventBatch, type FeedState, startEventFeed } from "./event-feed.js";
import { createQueryRefresher } from "./refresh.js";

type Listener = (batch: EventBatch) => void;

interface LiveFeed {
  readonly state: FeedState;
  readonly listeners: Set<Listener>;
}

const LiveContext = createContext<LiveFeed>({ state: "off", listeners: new Set() });

/** One event stream for all pages. Refetches the queries that events affect. */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const { me, may } = useSignedInKey();
  const transport = useTransport();
  const queries = useQueryClient();
  const [listeners] = useState(() => new Set<Listener>());
  const [state, setState] = useState<FeedState>("off");
  const mayWatch = may("event:read");
  const { applicationId } = me;

  useEffect(() => {
    if (!mayWatch) {
      return undefined;
    }
    const refresh = createQueryRefresher(queries, { applicationId });
    const stop = startEventFeed({
      transport,
      onState: setState,
      onRefused: () => void queries.invalidateQueries(),
      onBatch(batch) {
        refresh.after(batch);
        for (const listener of listeners) {
          listener(batch);
        }
      },
    });
    return () => {
      stop();
      refresh.stop();
      setState("off");
    };
  }, [mayWatch, applicationId, transport, queries, listeners]);

  return <LiveContext value={{ state, listeners }}>{children}</LiveContext>;
}

/** Calls the listener with the events of the stream while the component is mounted. */
export function useLiveEvents(listener: Listener): void {
  const { listeners } = useContext(LiveContext);
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => {
    const forward: Listener = (batch) => latest.current(batch);
    listeners.add(forward);
    return () => {
      listeners.delete(forward);
    };
  }, [listeners]);
}

/** The state of the stream, or `fallback` without one. */
export function LiveBadge({ fallback }: { readonly fallback: string }) {
  const { state } = useContext(LiveContext);
  return (
    <span role="status">
      {state === "live" && (
        <Badge tone="good" hasDot>
          Live
        </Badge>
      )}
      {state === "connecting" && <Badge>Connecting…</Badge>}
      {state === "lost" && <Badge tone="warning">Reconnecting…</Badge>}
      {state === "off" && <Badge>{fallback}</Badge>}
    </span>
  );
}
