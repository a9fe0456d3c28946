import type { ApplicationType } from "../../src/contract/grants.js";
import { newId } from "../../src/lib/uuid.js";
import type { Store } from "../../src/store/port/store.js";
import type { ImportedApplication } from "../../src/store/port/transfer.js";
import { anImportedApplication } from "../contract/store/transfer-fixtures.js";

const types: readonly ApplicationType[] = ["private", "public", "management"];
const start = Date.UTC(2025, 0);
const batch = 500;

/** Puts many applications into a tenant: `Service 0`, the oldest, to the last one, by turns of each type. */
export async function seedApplications(
  { transfer }: Store,
  tenantId: string,
  count: number,
): Promise<readonly ImportedApplication[]> {
  const made = Array.from({ length: count }, (_, place) =>
    anImportedApplication({
      id: newId(start + place),
      createdAt: start + place,
      tenantId,
      name: `Service ${place}`,
      type: types[place % types.length] as ApplicationType,
    }),
  );
  for (let first = 0; first < count; first += batch) {
    await transfer.importApplications(made.slice(first, first + batch), {
      replace: false,
      dryRun: false,
    });
  }
  return made;
}
