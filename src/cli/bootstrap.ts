import { createKeyring } from "../auth/keys.js";
import { type BootstrapResult, bootstrap } from "../bootstrap.js";
import { readSettings } from "../config/settings.js";
import { Problem } from "../errors.js";
import { openStore } from "../store/open-store.js";
import { latchkey } from "./errors.js";
import { requireReader } from "./stdio.js";

interface BootstrapFlags {
  readonly tenant?: string;
  readonly name?: string;
  readonly json?: boolean;
}

/** Creates the first management application of a tenant and prints its key. */
export async function bootstrapCommand({
  tenant: tenantId,
  name,
  json,
}: BootstrapFlags): Promise<void> {
  const settings = readSettings();
  const store = await openStore(settings);
  try {
    const keyring = createKeyring(settings.peppers);
    const created = await bootstrap({ store, keyring, tenantId, name });
    requireReader(
      `The key of the new application ${created.applicationId} is lost. ` +
        `Create another: ${latchkey(`bootstrap --tenant ${created.tenantId}`)}`,
    );
    process.stdout.write(json ? formatJson(created) : formatText(created));
  } catch (error) {
    throw error instanceof Problem ? new Error(error.rawMessage) : error;
  } finally {
    await store.close();
  }
}

function formatJson({ tenantId, applicationId, key }: BootstrapResult): string {
  return `${JSON.stringify({ tenant_id: tenantId, application_id: applicationId, key })}\n`;
}

function formatText({ tenantId, applicationId, key }: BootstrapResult): string {
  return `tenant       ${tenantId}
application  ${applicationId}
key
  ${key}

The key is shown only once. Store it safely.
`;
}
