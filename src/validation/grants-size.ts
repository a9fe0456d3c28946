import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CredentialStateRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import type { Grants } from "../contract/grants.js";
import type { FieldViolation } from "../contract/problems.js";

/** Finds grants of one application or session that take more bytes than the limit. */
export function findOversizedGrants(grants: Grants, limit: number): FieldViolation[] {
  const size = maxSizeOf(grants) <= limit ? 0 : sizeOf(grants);
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

/** The size of grants as protobuf encodes them. */
function sizeOf({ permissions, rules }: Grants): number {
  const record = { permissions, rules } as MessageInitShape<typeof CredentialStateRecordSchema>;
  return toBinary(CredentialStateRecordSchema, create(CredentialStateRecordSchema, record)).length;
}

/**
 * A bound of the size, which costs less than to encode the grants. Names and quotes make
 * JSON longer than protobuf, in which a UTF-16 unit takes up to three bytes.
 */
function maxSizeOf({ permissions, rules }: Grants): number {
  return 3 * JSON.stringify([permissions, rules]).length;
}
