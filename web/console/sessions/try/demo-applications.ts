import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type {
  Application,
  ApplicationService,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import { serviceNow } from "../../access/service-time.js";

/** Milliseconds after which they end by themselves, should nobody remove them. */
const lifetime = 3_600_000;

/** A web shop and its backend, made to try sessions with. Their keys are in memory only. */
export interface DemoApplications {
  readonly shop: Application;
  readonly backend: Application;
}

type Applications = Client<typeof ApplicationService>;

/** What the demo backend may do, and so grant. */
export function demoPermissions(may: (permission: string) => boolean): string[] {
  return ["token:read", "token:use", ...["application:read"].filter(may)];
}

export async function makeDemoApplications(
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
