import { create } from "@bufbuild/protobuf";
import { CreateApplicationRequestSchema } from "../gen/latchkey/v1/application_service_pb.js";
import { generateKey, type Keyring } from "./auth/keys.js";
import { keyTypeOf } from "./contract/key-text.js";
import { ownPermissions } from "./contract/methods.js";
import { newId } from "./lib/uuid.js";
import { stateOf } from "./services/events/audit.js";
import { newApplication } from "./store/port/records.js";
import type { Store } from "./store/port/store.js";
import { assertValidMessage } from "./validation/validate.js";

interface BootstrapOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  /** Defaults to a new tenant. */
  readonly tenantId?: string | undefined;
  readonly name?: string | undefined;
}

/** The first application of a tenant with its key. Only a hash of the key is stored. */
export interface BootstrapResult {
  readonly tenantId: string;
  readonly applicationId: string;
  readonly key: string;
}

/** Creates a management application with every permission of this service. */
export async function bootstrap({
  store,
  keyring,
  tenantId,
  name = "Bootstrap",
}: BootstrapOptions): Promise<BootstrapResult> {
  const type = "management";
  const permissions = ownPermissions.map((permission) => permission.name);
  assertValidMessage(
    CreateApplicationRequestSchema,
    create(CreateApplicationRequestSchema, { name, type, permissions }),
  );
  const now = await store.now();
  const id = newId(now);
  const key = generateKey(keyTypeOf(type), id);
  const keyId = newId(now);
  const created = newApplication(
    {
      id,
      tenantId: tenantId?.toLowerCase() ?? newId(now),
      name,
      type,
      permissions,
      rules: [],
      key: { id: keyId, hash: keyring.hash(key) },
    },
    now,
  );
  return store.change({
    target: { kind: "application", id },
    creates: true,
    reads: {},
    decide: () => ({
      put: created,
      event: {
        tenantId: created.tenantId,
        kind: "application.created",
        outcome: "success",
        target: { applicationId: id, keyId, name },
        after: stateOf(created),
      },
      result: { tenantId: created.tenantId, applicationId: id, key },
    }),
  });
}
