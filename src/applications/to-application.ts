import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApplicationSchema } from "../../gen/latchkey/v1/application_service_pb.js";
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
    permissions: [...record.permissions],
    rules: record.rules.map((rule) => ({
      ...rule,
      conditions: [...rule.conditions],
      permissions: [...rule.permissions],
    })),
    createdBy: record.createdBy,
    createdAt: toTimestamp(record.createdAt),
    modifiedBy: record.modifiedBy,
    modifiedAt: toTimestamp(record.modifiedAt),
    expiresAt: toTimestamp(record.expiresAt),
  };
}
