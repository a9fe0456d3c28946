import { Badge } from "../ui/badge.js";

/** Whether a session has its access. */
export function StateBadge({ state }: { readonly state: string }) {
  return <Badge tone={state === "authorized" ? "good" : "plain"}>{state}</Badge>;
}
