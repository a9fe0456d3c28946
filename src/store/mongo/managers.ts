import { type ClientSession, type Collection, type Document, ObjectId } from "mongodb";
import { LastManager } from "../managers.js";
import type { ApplicationRecord } from "../store.js";
import { type ApplicationDocument, uuid } from "./documents.js";
import { limitsIn, reach } from "./reach.js";
import { byManaging, managing } from "./schema.js";
import { someAlive, type Time } from "./time.js";

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

/**
 * Makes sure, before an application stops managing its tenant, that another
 * one still does when the transaction is committed. To write to that one is
 * what makes two such transactions conflict that rely on each other's.
 */
export async function lockOtherManager(
  documents: Collection<ApplicationDocument>,
  application: ApplicationRecord,
  time: Time,
  session: ClientSession | undefined,
): Promise<void> {
  const other = await findOtherManager(documents, application, someAlive(time), session);
  if (!other) {
    throw new LastManager();
  }
  const lock = { $set: { manager_lock: new ObjectId() } };
  await reach(() => documents.updateOne({ _id: other._id }, lock, limitsIn(session)));
}
