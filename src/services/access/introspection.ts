import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import type {
  IntrospectionService,
  IntrospectResponseSchema,
} from "../../../gen/latchkey/v1/introspection_service_pb.js";
import { type Caller, expiryOf, grantsOf } from "../../auth/caller.js";
import { callerOf } from "../../call.js";
import { permissionSetOf } from "../../contract/grants.js";
import type { Dependencies } from "../../dependencies.js";
import { mapMaybePromise } from "../../lib/async.js";

/** Creates the token introspection of RFC 7662. A key is active if an access check could allow it something. */
export function createIntrospectionHandlers({
  checks,
}: Pick<Dependencies, "checks">): ServiceImpl<typeof IntrospectionService> {
  return {
    introspect({ token, origin, address }, context) {
      const request = create(CheckAccessRequestSchema, {
        principal: { case: "key", value: token },
        origin,
        address,
      });
      return mapMaybePromise(checks.findActive(callerOf(context), request), (owner) =>
        owner ? describe(owner) : { active: false },
      );
    },
  };
}

/** Describes the owner of an active key. */
function describe(owner: Caller): MessageInitShape<typeof IntrospectResponseSchema> {
  const { application, session, boundary, key } = owner;
  const limit = boundary && permissionSetOf(boundary);
  const held = [...permissionSetOf(grantsOf(owner))];
  return {
    active: true,
    scope: held.filter((permission) => !limit || limit.has(permission)).join(" "),
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
