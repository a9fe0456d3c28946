import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import type {
  Application,
  ApplicationService,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import type { CreateSessionResponse } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { serviceNow } from "../../sign-in/connection.js";

export const steps = [
  "Open",
  "Before authorization",
  "Authorize",
  "Use",
  "Reuse the nonce",
] as const;

/** The progress of the walkthrough. */
interface Flow {
  /** The index in `steps`. */
  readonly step: number;
  readonly demo?: DemoApplications | undefined;
  readonly session?: CreateSessionResponse | undefined;
  /** Calls with the key of the backend. */
  readonly backend?: Transport | undefined;
}

const start: Flow = { step: 0 };
const flowKey: QueryKey = ["try-session"];

/** Stored in the query cache, so that it survives visits to other pages. */
export function useFlow(): readonly [Flow, (changed: Partial<Flow>) => void] {
  const queries = useQueryClient();
  const { data: flow = start } = useQuery<Flow>({
    queryKey: flowKey,
    initialData: start,
    queryFn: skipToken,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });
  // Merges, because responses may arrive late.
  function change(changed: Partial<Flow>): void {
    queries.setQueryData<Flow>(flowKey, (now = start) => ({ ...now, ...changed }));
  }
  return [flow, change];
}

export interface StepViewProps {
  readonly flow: Flow;
  change(changed: Partial<Flow>): void;
  /** Whether the user came from another step. */
  readonly isArrival: boolean;
}

/** They expire after an hour if nobody removes them. */
const lifetime = 3_600_000;

/** A temporary shop and its backend. Their keys are only in memory. */
interface DemoApplications {
  readonly shop: Application;
  readonly backend: Application;
}

type Applications = Client<typeof ApplicationService>;

/** The permissions of the demo backend. */
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
    // Report the first error. The shop expires anyway.
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

/** Ignores applications that are already deleted. */
async function remove(applications: Applications, { id }: Application): Promise<void> {
  try {
    await applications.deleteApplication({ id });
  } catch (thrown) {
    if (ConnectError.from(thrown).code !== Code.NotFound) {
      throw thrown;
    }
  }
}
