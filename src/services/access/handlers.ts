import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AccessService,
  type AuthorizerGrantsSchema,
  type CheckAccessRequest,
  type StreamCheckAccessRequest,
  StreamCheckAccessRequestSchema,
  type WhoAmIResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Caller, expiryOf, grantsOf } from "../../auth/caller.js";
import { callerOf, callOf } from "../../call.js";
import { type ApplicationType, applicationTypes, permissionSetOf } from "../../contract/grants.js";
import { mayHold, otherPermissions, ownPermissions } from "../../contract/methods.js";
import type { Dependencies } from "../../dependencies.js";
import type { Problem } from "../../errors.js";
import { mapMaybePromise } from "../../lib/async.js";
import { batchPerTick, createConcurrencyWindow, mapConcurrently } from "../../lib/concurrency.js";
import { createPace, waitForTime } from "../../lib/event-loop.js";
import { throwIfRefused } from "../../limits/rate-limits.js";
import { toTimestamp } from "../../validation/time.js";
import { validateMessage } from "../../validation/validate.js";
import { createShortPages } from "../pagination.js";
import { showGrants } from "../rules.js";
import { createOpenStream, createResumeTokens } from "../streams.js";
import { watchCredentials } from "./watch.js";

/** Concurrent checks of streams: in total, and per stream. */
const streamWindow = { total: 512, max: 256, min: 2 };

export function createAccessHandlers({
  store,
  checks,
  runBatch,
  rateLimits,
  createSealer,
  stopping,
}: Pick<
  Dependencies,
  "store" | "checks" | "runBatch" | "rateLimits" | "createSealer" | "stopping"
>): ServiceImpl<typeof AccessService> {
  const resumeTokens = createResumeTokens(createSealer, "credentials");
  const pageOf = createShortPages<{ readonly name: string }>(createSealer, "permissions", {
    idOf: ({ name }) => name,
    isAfter: ({ name }, after) => knownNames.indexOf(name) > knownNames.indexOf(after),
  });
  const stream = createOpenStream(stopping);
  const window = createConcurrencyWindow(streamWindow);

  return {
    checkAccess: (request, context) => checks.evaluate(callerOf(context), request),

    async batchCheckAccess(request, context) {
      return {
        results: await runBatch(callOf(context), "checks", request.checks, (check) => check),
      };
    },

    streamCheckAccess(requests, context) {
      const authorized = callOf(context);
      const { caller, call } = authorized;
      const countChecks = rateLimits.createCheckCounter(caller, call.peer);
      const check = batchPerTick(async (group: readonly (CheckAccessRequest | Problem)[]) => {
        // Started together, so that they share a lookup. Both must succeed.
        const [results] = await Promise.all([
          checks.openBatch(caller, createPace(caller.application.tenantId))(group),
          authorized.reauthorize(),
        ]);
        return results;
      });
      const respond = async (request: StreamCheckAccessRequest) => {
        const counting = countChecks(1);
        if (counting) {
          throwIfRefused(await counting);
        }
        const problem = validateMessage(StreamCheckAccessRequestSchema, request);
        const result = await check(problem ?? (request.check as CheckAccessRequest));
        return { correlationId: request.correlationId, result };
      };
      return stream(context, (signal) =>
        mapConcurrently({ items: requests, map: respond, window, signal }),
      );
    },

    whoAmI(_request, context) {
      const caller = callerOf(context);
      // Many calls may arrive at once, and thousands of permissions take long.
      return mapMaybePromise(waitForTime(caller.application.tenantId), () =>
        describeCaller(caller),
      );
    },

    listPermissions(request, context) {
      const known = listPermissions(request.type as ApplicationType | undefined);
      const { page, pagination } = pageOf(context, known, request);
      return { data: page, pagination };
    },

    watchCredentials(request, context) {
      const call = callOf(context);
      const { tenantId } = call.caller.application;
      const reauthorize = () => call.reauthorize();
      const { changes } = store;
      return stream(context, (signal) =>
        watchCredentials({ changes, resumeTokens, tenantId, request, reauthorize, signal }),
      );
    },
  };
}

function describeCaller(caller: Caller): MessageInitShape<typeof WhoAmIResponseSchema> {
  const { application, session } = caller;
  return {
    kind: session ? "session" : "application",
    applicationId: application.id,
    sessionId: session?.id,
    tenantId: application.tenantId,
    name: application.name,
    type: application.type,
    authorized: !session || session.authorizedAt !== undefined,
    ...showGrants(grantsOf(caller)),
    expiresAt: toTimestamp(expiryOf(caller)),
    allowedOrigins: [...application.allowedOrigins],
    allowedCidrs: [...application.allowedCidrs],
    authorizedBy: session?.authorizedBy,
    authorizer: boundaryOf(caller),
  };
}

/** The authorizer's grants that limit a session, reduced to the session's permissions. */
function boundaryOf({
  session,
  boundary,
}: Caller): MessageInitShape<typeof AuthorizerGrantsSchema> | undefined {
  if (!session || !boundary) {
    return undefined;
  }
  const granted = permissionSetOf(session);
  const held = permissionSetOf(boundary);
  const isGranted = (permission: string) => granted.has(permission);
  return {
    ...showGrants({
      permissions: boundary.permissions.filter(isGranted),
      rules: boundary.rules
        .map((rule) => ({ ...rule, permissions: rule.permissions.filter(isGranted) }))
        .filter(({ permissions }) => permissions.length > 0),
    }),
    missingPermissions: [...granted].filter((permission) => !held.has(permission)),
  };
}

const knownPermissions = [...ownPermissions, ...otherPermissions];
const knownNames = knownPermissions.map(({ name }) => name);

/** All known permissions, or those that an application type may hold. */
function listPermissions(type: ApplicationType | undefined) {
  return knownPermissions
    .filter(({ name }) => type === undefined || mayHold(type, name))
    .map(({ name, allows }) => ({
      name,
      allows,
      types: applicationTypes.filter((type) => mayHold(type, name)),
      own: ownPermissions.some((own) => own.name === name),
    }));
}
