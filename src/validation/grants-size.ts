import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { CredentialStateRecordSchema } from "../../gen/latchkey/store/v1/records_pb.js";
import type { Grants } from "../contract/grants.js";
import { invalidRequest } from "../errors.js";

/** Throws if the grants of one application or session take more bytes than the limit, as protobuf encodes them. */
export function checkGrantsSize({ permissions, rules }: Grants, limit: number): void {
  const grants = { permissions, rules } as MessageInitShape<typeof CredentialStateRecordSchema>;
  const size = toBinary(
    CredentialStateRecordSchema,
    create(CredentialStateRecordSchema, grants),
  ).length;
  if (size <= limit) {
    return;
  }
  const [field, other] = rules.length > 0 ? ["rules", "permissions"] : ["permissions", "rules"];
  const message =
    `must be at most ${limit} bytes together with ${other}, as protobuf encodes them, ` +
    `but they are ${size} bytes: use fewer or shorter rules`;
  throw invalidRequest({ field, message });
}
