import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import type {
  IntrospectionService,
  IntrospectResponseSchema,
} from "../../../gen/latchkey/v1/introspection_service_pb.js";
import { type Caller, callerHolds, callerOf, expiryOf, grantsOf } from "../../auth/caller.js";
import { createRestrictionCheck } from "../../contract/decisions/restrictions.js";
import { heldPermissions } from "../../contract/grants.js";
import { mapMaybePromise } from "../../lib/async.js";
import type { Subjects } from "./subjects.js";

interface IntrospectionOptions {
  readonly subjects: Pick<Subjects, "find">;
}

/** Creates the token introspection of RFC 7662. It finds keys as access checks do. */
export function createIntrospectionHandlers({
  subjects,
}: IntrospectionOptions): ServiceImpl<typeof IntrospectionService> {
  const restrictionCheck = createRestrictionCheck();

  return {
    introspect({ token, origin, address }, context) {
      const request = create(CheckAccessRequestSchema, { key: token });
      return mapMaybePromise(subjects.find(callerOf(context), request), (subject) => {
        const { owner, inactiveReason } = subject;
        const isActive =
          owner &&
          inactiveReason === undefined &&
          isAuthorized(owner) &&
          restrictionCheck.allowsOrigin(owner.application, origin) &&
          restrictionCheck.allowsAddress(owner.application, address);
        return isActive ? describe(owner) : { active: false };
      });
    },
  };
}

function isAuthorized({ session }: Caller): boolean {
  return !session || session.authorizedAt !== undefined;
}

/** Describes the owner of an active key. */
function describe(owner: Caller): MessageInitShape<typeof IntrospectResponseSchema> {
  const { application, session, key } = owner;
  const held = heldPermissions(grantsOf(owner));
  return {
    active: true,
    scope: held.filter((permission) => callerHolds(owner, permission)).join(" "),
    clientId: application.id,
    tokenType: "Bearer",
    exp: toSeconds(expiryOf(owner)),
    iat: toSeconds((session ?? key)?.createdAt),
    sub: (session ?? application).id,
    jti: (session ?? key)?.id,
    tenantId: application.tenantId,
  };
}

/** Unix time in whole seconds, rounded down: a key must not seem valid after it expired. */
function toSeconds(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.floor(milliseconds / 1_000);
}
