import { useTransport } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from "react";
import { useAccess } from "../access/access.js";
import { Badge } from "../ui/display.js";
import { type EventBatch, type FeedState, startEventFeed } from "./event-feed.js";
import { createQueryRefresher } from "./refresh.js";

type Listener = (batch: EventBatch) => void;

interface LiveState {
  readonly state: FeedState;
  readonly listeners: Set<Listener>;
}

const LiveContext = createContext<LiveState>({ state: "off", listeners: new Set() });

/**
 * Follows what happens in the tenant, where the key may, for all pages
 * together, and has what they show asked for again when it changes.
 */
export function LiveProvider({ children }: { readonly children: ReactNode }) {
  const { me, may } = useAccess();
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

/** Whether news come by themselves. */
export function useLiveState(): FeedState {
  return useContext(LiveContext).state;
}

/** Calls the listener with what happens, from now on. */
export function useEventListener(listener: Listener): void {
  const { listeners } = useContext(LiveContext);
  const latest = useRef(listener);
  useEffect(() => {
    latest.current = listener;
  });
  useEffect(() => {
    const hear: Listener = (batch) => latest.current(batch);
    listeners.add(hear);
    return () => {
      listeners.delete(hear);
    };
  }, [listeners]);
}

/** Says whether what is shown follows what happens, and how it is kept true otherwise. */
export function LiveBadge({ otherwise }: { readonly otherwise: string }) {
  const state = useLiveState();
  return (
    <span role="status">
      {state === "live" && <Badge tone="good">● Live</Badge>}
      {state === "connecting" && <Badge>Connecting…</Badge>}
      {state === "lost" && <Badge tone="warning">Connecting again…</Badge>}
      {state === "off" && <Badge>{otherwise}</Badge>}
    </span>
  );
}
