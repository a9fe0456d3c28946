import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SessionSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { showGrants } from "../grants.js";
import { toTimestamp } from "../moments.js";
import type { SessionRecord } from "../store/store.js";

/** A session as answers show it. */
export function toSession(record: SessionRecord): MessageInitShape<typeof SessionSchema> {
  return {
    id: record.id,
    tenantId: record.tenantId,
    applicationId: record.applicationId,
    state: record.authorizedAt === undefined ? "unauthorized" : "authorized",
    ...showGrants(record),
    createdAt: toTimestamp(record.createdAt),
    expiresAt: toTimestamp(record.expiresAt),
    authorizedAt: toTimestamp(record.authorizedAt),
    authorizedBy: record.authorizedBy,
  };
}
