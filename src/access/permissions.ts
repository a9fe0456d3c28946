import type { MessageInitShape } from "@bufbuild/protobuf";
import type { KnownPermissionSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { mayHold, otherPermissions, ownPermissions } from "../contract.js";
import { type ApplicationType, applicationTypes } from "../store/store.js";

/** The permissions that are known, or of those the ones that a type of application may hold. */
export function listPermissions(
  type: ApplicationType | undefined,
): MessageInitShape<typeof KnownPermissionSchema>[] {
  return [...ownPermissions, ...otherPermissions]
    .filter(({ name }) => type === undefined || mayHold(type, name))
    .map(({ name, allows }) => ({
      name,
      allows,
      types: applicationTypes.filter((type) => mayHold(type, name)),
      own: ownPermissions.some((own) => own.name === name),
    }));
}
