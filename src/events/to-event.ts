import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CredentialStateSchema,
  EventPartySchema,
  EventSchema,
} from "../../gen/latchkey/v1/event_service_pb.js";
import { showGrants } from "../grants.js";
import { toTimestamp } from "../moments.js";
import type { CredentialState, EventRecord, Party } from "../store/events.js";

/** An event as answers show it. */
export function toEvent(record: EventRecord): MessageInitShape<typeof EventSchema> {
  const { actor, target, before, after } = record;
  return {
    id: record.id,
    kind: record.kind,
    at: toTimestamp(record.at),
    outcome: record.outcome,
    actor: actor && showParty(actor),
    target: showParty(target),
    before: before && showState(before),
    after: after && showState(after),
    reason: record.reason,
    method: record.method,
    requestId: record.requestId,
    address: record.address,
    count: record.count,
    endsAt: toTimestamp(record.endsAt),
  };
}

/** Nobody is not shown. */
function showParty({
  applicationId,
  sessionId,
  keyId,
}: Party): MessageInitShape<typeof EventPartySchema> | undefined {
  const ids = { applicationId, sessionId, keyId };
  return Object.values(ids).some((id) => id !== undefined) ? ids : undefined;
}

function showState(state: CredentialState): MessageInitShape<typeof CredentialStateSchema> {
  const { name, disabled, allowedOrigins = [], allowedCidrs = [], expiresAt, sessionQuota } = state;
  return {
    name,
    ...showGrants(state),
    status: disabled === undefined ? undefined : disabled ? "disabled" : "enabled",
    allowedOrigins: [...allowedOrigins],
    allowedCidrs: [...allowedCidrs],
    expiresAt: toTimestamp(expiresAt),
    sessionQuota,
  };
}
