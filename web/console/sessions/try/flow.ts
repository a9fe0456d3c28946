import type { Transport } from "@connectrpc/connect";
import { type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import type { CreateSessionResponse } from "../../../../gen/latchkey/v1/session_service_pb.js";
import type { DemoApplications } from "./demo-applications.js";

export const steps = ["Open", "Too early", "Authorize", "Use", "Only once"] as const;

/** How far the person has come, and what was made on the way. */
export interface Flow {
  /** The place of the step in their list. */
  readonly step: number;
  readonly demo?: DemoApplications | undefined;
  readonly session?: CreateSessionResponse | undefined;
  /** Calls with the key of the backend that authorized the session. */
  readonly backend?: Transport | undefined;
}

const start: Flow = { step: 0 };
const place: QueryKey = ["try-session"];

/** The flow, which lasts as long as the visit: the person may look at other pages meanwhile. */
export function useFlow(): readonly [Flow, (changed: Partial<Flow>) => void] {
  const queries = useQueryClient();
  const { data: flow = start } = useQuery<Flow>({
    queryKey: place,
    initialData: start,
    queryFn: skipToken,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
  // Calls come back late: what was changed meanwhile stays.
  function change(changed: Partial<Flow>): void {
    queries.setQueryData<Flow>(place, (now = start) => ({ ...now, ...changed }));
  }
  return [flow, change];
}

/** What each step is shown with. */
export interface StepInFlow {
  readonly flow: Flow;
  change(changed: Partial<Flow>): void;
  /** Whether the person came here from another step. */
  readonly isArrival: boolean;
}
