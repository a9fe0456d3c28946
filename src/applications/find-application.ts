import type { HandlerContext } from "@connectrpc/connect";
import { callerOf } from "../caller.js";
import { applicationNotFound } from "../errors.js";
import type { ApplicationRecord, ApplicationStore } from "../store/store.js";

/** Finds an application of the caller's tenant, or says that there is none. */
export async function findApplication(
  applications: Pick<ApplicationStore, "find">,
  context: HandlerContext,
  request: { readonly id: string },
): Promise<ApplicationRecord> {
  const id = request.id.toLowerCase();
  const record = await applications.find(id);
  if (record?.tenantId !== callerOf(context).application.tenantId) {
    throw applicationNotFound(id);
  }
  return record;
}
