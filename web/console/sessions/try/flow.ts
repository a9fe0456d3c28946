import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import type {
  Application,
  ApplicationService,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import type { CreateSessionResponse } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { serviceNow } from "../../access/service-clock.js";

export const steps = ["Open", "Too early", "Authorize", "Use", "Only once"] as const;

/** How far the person has come, and what was made on the way. */
interface Flow {
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
export interface StepViewProps {
  readonly flow: Flow;
  change(changed: Partial<Flow>): void;
  /** Whether the person came here from another step. */
  readonly isArrival: boolean;
}

/** Milliseconds after which they end by themselves, should nobody remove them. */
const lifetime = 3_600_000;

/** A web shop and its backend, made to try sessions with. Their keys are in memory only. */
interface DemoApplications {
  readonly shop: Application;
  readonly backend: Application;
}

type Applications = Client<typeof ApplicationService>;

/** What the demo backend may do, and so grant. */
export function demoPermissions(may: (permission: string) => boolean): string[] {
  return ["token:read", "token:use", ...["application:read"].filter(may)];
}

export async function createDemoApplications(
  applications: Applications,
  permissions: readonly string[],
): Promise<DemoApplications> {
  const expiresAt = timestampFromMs(serviceNow() + lifetime);
  const shop = await applications.createApplication({
    name: "Demo shop (temporary)",
    type: "public",
    permissions: ["token:create"],
    expiresAt,
  });
  try {
    const backend = await applications.createApplication({
      name: "Demo backend (temporary)",
      type: "private",
      permissions: [...permissions],
      expiresAt,
    });
    return { shop, backend };
  } catch (reason) {
    // Why there is no backend is what counts, and the shop ends by itself.
    await remove(applications, shop).catch(() => undefined);
    throw reason;
  }
}

export async function removeDemoApplications(
  applications: Applications,
  { shop, backend }: DemoApplications,
): Promise<void> {
  for (const application of [shop, backend]) {
    await remove(applications, application);
  }
}

/** Removes one that may be gone already. */
async function remove(applications: Applications, { id }: Application): Promise<void> {
  try {
    await applications.deleteApplication({ id });
  } catch (thrown) {
    if (ConnectError.from(thrown).code !== Code.NotFound) {
      throw thrown;
    }
  }
}
