import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CredentialStateRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import type { Grants } from "../contract/grants.js";
import type { FieldViolation } from "../contract/problems.js";

/** The size of grants as protobuf encodes them. The sizes of permissions and rules add up. */
export function sizeOfGrants(grants: Partial<Grants>): number {
  const record = grants as MessageInitShape<typeof CredentialStateRecordSchema>;
  return toBinary(CredentialStateRecordSchema, create(CredentialStateRecordSchema, record)).length;
}

/** Finds grants of one application or session that take more bytes than the limit. */
export function findOversizedGrants(
  grants: Grants,
  limit: number,
  size = sizeOfGrants(grants),
): FieldViolation[] {
  if (size <= limit) {
    return [];
  }
  const [field, other] =
    grants.rules.length > 0 ? ["rules", "permissions"] : ["permissions", "rules"];
  const message =
    `must be at most ${limit} bytes together with ${other}, as protobuf encodes them, ` +
    `but they are ${size} bytes: use fewer or shorter rules`;
  return [{ field, message, code: "grants.max_bytes" }];
}
