import { CredentialStateRecordSchema } from "../../../gen/latchkey/store/v1/records_pb.js";
import type { Caller } from "../../auth/caller.js";
import { createConverter } from "../../contract/message-converter.js";
import type { CredentialState, Principal } from "../../store/port/events.js";
import type { ApplicationRecord, SessionRecord } from "../../store/port/records.js";

/** A caller as an event describes it. */
export function actorOf({ application, session, key }: Caller): Principal {
  const { id: applicationId, name } = application;
  return { applicationId, sessionId: session?.id, keyId: key?.id, name };
}

const pickState = createConverter(CredentialStateRecordSchema, {
  withDefaults: true,
  shareNested: true,
});

/** The state of an application or a session for an event. */
export function stateOf(record: ApplicationRecord | SessionRecord): CredentialState {
  return pickState(record) as CredentialState;
}
