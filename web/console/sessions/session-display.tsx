import { Badge } from "../ui/display.js";

export function SessionStateBadge({ state }: { readonly state: string }) {
  return <Badge tone={state === "authorized" ? "good" : "plain"}>{state}</Badge>;
}
