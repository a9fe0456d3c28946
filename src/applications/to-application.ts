import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApplicationSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { showGrants } from "../grants.js";
import { toTimestamp } from "../moments.js";
import type { ApplicationRecord } from "../store/store.js";

/** An application as answers show it; its key only where it was just made. */
export function toApplication(
  record: ApplicationRecord,
  key?: string,
): MessageInitShape<typeof ApplicationSchema> {
  return {
    id: record.id,
    tenantId: record.tenantId,
    name: record.name,
    key,
    type: record.type,
    ...showGrants(record),
    createdBy: record.createdBy,
    createdAt: toTimestamp(record.createdAt),
    modifiedBy: record.modifiedBy,
    modifiedAt: toTimestamp(record.modifiedAt),
    expiresAt: toTimestamp(record.expiresAt),
  };
}
