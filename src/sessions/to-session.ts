import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SessionSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { endOf } from "../caller.js";
import type { GrantPolicy } from "../config.js";
import { showGrants } from "../grants.js";
import { toTimestamp } from "../moments.js";
import type { SessionWithApplication } from "../store/store.js";

/** A session as answers show it. */
export function toSession(
  found: SessionWithApplication,
  grantPolicy: GrantPolicy,
): MessageInitShape<typeof SessionSchema> {
  const record = found.session;
  return {
    id: record.id,
    tenantId: record.tenantId,
    applicationId: record.applicationId,
    state: record.authorizedAt === undefined ? "unauthorized" : "authorized",
    ...showGrants(record),
    createdAt: toTimestamp(record.createdAt),
    expiresAt: toTimestamp(endOf(found)),
    authorizedAt: toTimestamp(record.authorizedAt),
    authorizedBy: record.authorizedBy,
    limitedByAuthorizer: (found.authorizer && grantPolicy === "held") || undefined,
  };
}
