import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CheckAccessRequest,
  CheckAccessRequestSchema,
  StreamCheckAccessRequestSchema,
  TokenReferenceSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";

/** A check with its principal beside the other fields, as in JSON. */
export interface CheckInit {
  readonly key?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly externalId?: string | undefined;
  readonly permission?: string;
  readonly token?: MessageInitShape<typeof TokenReferenceSchema>;
  readonly origin?: string;
  readonly address?: string;
}

export interface StreamedCheck {
  readonly correlationId?: string;
  readonly check?: CheckInit;
}

/** The message of a check. */
export function toCheck({
  key,
  applicationId,
  sessionId,
  externalId,
  ...others
}: CheckInit): MessageInitShape<typeof CheckAccessRequestSchema> {
  const values = Object.entries({ key, applicationId, sessionId, externalId });
  const given = values.filter(([, value]) => value !== undefined);
  if (given.length > 1) {
    throw new Error("a message cannot have two principals");
  }
  const principals = given.map(([name, value]) => ({ case: name, value }));
  return { ...others, principal: principals[0] as CheckAccessRequest["principal"] };
}

export async function* toStreamedChecks(
  checks: AsyncIterable<StreamedCheck>,
): AsyncGenerator<MessageInitShape<typeof StreamCheckAccessRequestSchema>> {
  for await (const { check, ...others } of checks) {
    yield check ? { ...others, check: toCheck(check) } : others;
  }
}
