import { Badge } from "../ui/badge.js";
import { useLiveState } from "./live.js";

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
