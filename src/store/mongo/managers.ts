import type { ClientSession, Collection, Document } from "mongodb";
import type { ApplicationRecord } from "../port/records.js";
import { type ApplicationDocument, uuid } from "./documents.js";
import { limitsIn, reach } from "./reach.js";
import { byManaging, managing } from "./schema.js";

/** Finds another application that manages the tenant of this one, and is matched by a filter. */
export function findOtherManager(
  documents: Collection<ApplicationDocument>,
  { id, tenantId }: Pick<ApplicationRecord, "id" | "tenantId">,
  filter: Document,
  session: ClientSession | undefined,
): Promise<Pick<ApplicationDocument, "_id"> | null> {
  const others = { tenant_id: uuid(tenantId), disabled: { $ne: true }, _id: { $ne: uuid(id) } };
  const options = { projection: { _id: 1 }, hint: byManaging, ...limitsIn(session) } as const;
  return reach(() => documents.findOne({ ...others, ...managing, ...filter }, options));
}
