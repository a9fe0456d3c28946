import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type RevokeAllSessionsRequest,
  SessionSchema,
  type SessionService,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { expiryOf } from "../../auth/caller.js";
import { assertMayAdminister, assertSessionMayHold } from "../../auth/grants.js";
import { generateKey } from "../../auth/keys.js";
import { callerOf, callOf } from "../../call.js";
import type { GrantPolicy } from "../../config/settings.js";
import { parseKey } from "../../contract/key-format.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import {
  nonceNotFound,
  nonceUsed,
  sessionNotFound,
  sessionQuotaReached,
  unauthenticated,
} from "../../errors.js";
import { waitForTime } from "../../lib/event-loop.js";
import { withTimeout } from "../../lib/timeout.js";
import { newId } from "../../lib/uuid.js";
import { throwIfRefused } from "../../limits/rate-limits.js";
import { SessionQuotaReached } from "../../store/port/errors.js";
import type {
  ApplicationRecord,
  SessionRecord,
  SessionWithApplication,
} from "../../store/port/records.js";
import type { SessionFilter } from "../../store/port/sessions.js";
import { findOversizedGrants } from "../../validation/grants-size.js";
import { readExpiry, toTimestamp } from "../../validation/time.js";
import { throwViolations } from "../../validation/validate.js";
import { createUpdateApplication } from "../applications/update-application.js";
import { writeContextOf } from "../change-context.js";
import { stateOf, withDenialTarget } from "../events/audit.js";
import {
  createCursors,
  cursorScopeOf,
  defaultPageSize,
  describeTotal,
  maxCounted,
  totalOf,
} from "../pagination.js";
import { readGrants, showGrants } from "../rules.js";
import { createOpeningLimits } from "./opening-limits.js";

type SetupDependencies = Pick<
  Dependencies,
  | "store"
  | "keyring"
  | "grantGuard"
  | "audit"
  | "rateLimits"
  | "clock"
  | "settings"
  | "readAddressOf"
>;

type SessionHandlers = ServiceImpl<typeof SessionService>;

export function createSessionHandlers(
  dependencies: SetupDependencies & Pick<Dependencies, "createSealer">,
): SessionHandlers {
  return { ...createSessionSetupHandlers(dependencies), ...createManageHandlers(dependencies) };
}

/** Handlers that create and authorize sessions. */
function createSessionSetupHandlers({
  store,
  keyring,
  grantGuard,
  audit,
  rateLimits,
  clock,
  settings,
  readAddressOf,
}: SetupDependencies): Pick<SessionHandlers, "createSession" | "authorizeSession"> {
  const limitsOf = createOpeningLimits({ settings, storeId: store.id, readAddressOf });

  /** Converts the refusal of a quota. */
  function refuseSession(error: unknown, limit: number): never {
    if (error instanceof SessionQuotaReached) {
      rateLimits.countRefusedSession(error.quota);
      throw sessionQuotaReached(error.quota, limit, error.wait);
    }
    throw error;
  }

  return {
    async createSession(_request, context) {
      const { application } = callerOf(context);
      const { peer } = callOf(context).call;
      throwIfRefused(await rateLimits.countOpenedSession(callerOf(context), peer));
      const limits = limitsOf(application.id, peer);
      const id = newId(clock());
      const sessionKey = generateKey("ses", id);
      const nonce = generateKey("non", id);
      const response = (session: SessionRecord) => ({
        sessionKey,
        nonce,
        expiresAt: toTimestamp(expiryOf({ application, session })),
        id,
      });
      const creating = store.sessions.create(
        {
          id,
          tenantId: application.tenantId,
          applicationId: application.id,
          keyHash: keyring.hash(sessionKey),
          nonceHash: keyring.hash(nonce),
          ttl: settings.sessionTtl,
          ...limits,
        },
        writeContextOf(context, { response }),
      );
      const session = await creating.catch((error) =>
        refuseSession(error, settings.unauthorizedSessionQuota),
      );
      if (!session) {
        // The application was deleted after authentication, so its key is no longer valid.
        throw unauthenticated({ keyHeader: settings.keyHeader, bearer: settings.bearerKeys });
      }
      return response(session);
    },

    async authorizeSession(request, context) {
      const caller = callerOf(context);
      const grants = readGrants(request);
      const expiry = await readExpiry(request.expiresAt, store, settings.sessionMaxTtl);
      const { expiresAt, expiryViolations } = expiry;
      throwViolations([...findOversizedGrants(grants, settings.grantsLimit), ...expiryViolations]);
      assertSessionMayHold(grants);
      grantGuard.assertMayDelegate(caller, grants);
      const nonce = parseKey(request.nonce);
      if (nonce?.kind !== "non") {
        throw nonceNotFound();
      }
      const opened = await store.sessions.find(nonce.id);
      const name = opened?.application.name;
      const quota = opened?.application.sessionQuota ?? settings.sessionQuota;
      const authorizing = store.sessions.authorize(
        {
          sessionId: nonce.id,
          tenantId: caller.application.tenantId,
          nonceHashes: keyring.hashes(request.nonce),
          authorizedBy: caller.application.id,
          expiresAt,
          quota,
          ...grants,
        },
        audit(context, {
          kind: "session.authorized",
          target: ({ id, applicationId }) => ({ applicationId, sessionId: id, name }),
          after: (session) => stateOf(session),
          response: ({ id }) => ({ sessionId: id }),
        }),
      );
      const outcome = await authorizing.catch((error) => refuseSession(error, quota));
      if (outcome === "unknown") {
        throw nonceNotFound();
      }
      if (outcome === "used") {
        throw nonceUsed();
      }
      return { sessionId: nonce.id };
    },
  };
}

/** How many sessions a revocation counts, and for how many milliseconds: it must not wait for more. */
const maxCountedRevocable = 1_000;
const countTimeoutMs = 200;

/** Handlers that list, show, delete and revoke sessions. */
function createManageHandlers({
  store,
  grantGuard,
  audit,
  createSealer,
  settings,
}: Pick<Dependencies, "store" | "grantGuard" | "audit" | "createSealer" | "settings">): Pick<
  SessionHandlers,
  "listSessions" | "getSession" | "deleteSession" | "revokeAllSessions"
> {
  const { sessions } = store;
  const cursors = createCursors(createSealer, "sessions");
  const toMessage = (found: SessionWithApplication) => toSession(found, settings.grantPolicy);
  const updateApplication = createUpdateApplication({ store, grantGuard, audit });

  /** The number of open sessions that match, if it is not too expensive to count. */
  async function count(filter: SessionFilter, signal: AbortSignal): Promise<number | undefined> {
    const { open, isComplete } = await sessions.count(filter, maxCounted, signal);
    return isComplete ? open : undefined;
  }

  /**
   * The number of open sessions that a revocation ends, if there are few and the store is fast.
   * Neither a failure nor a count that never settles prevents the revocation.
   */
  async function countRevocable(
    { id, openedOnly }: RevokeAllSessionsRequest,
    context: HandlerContext,
  ): Promise<number | undefined> {
    const { tenantId } = callerOf(context).application;
    const applicationId = id.toLowerCase();
    const filters = [
      { tenantId, applicationId },
      ...(openedOnly ? [] : [{ tenantId, authorizedBy: applicationId }]),
    ];
    const stopping = new AbortController();
    const signal = AbortSignal.any([context.signal, stopping.signal]);
    const counting = filters.map((filter) => sessions.count(filter, maxCountedRevocable, signal));
    const all = Promise.all(counting).catch(() => []);
    const counts = await withTimeout(all, countTimeoutMs, () => {
      stopping.abort();
      return [];
    });
    const open = counts.reduce((total, count) => total + count.open, 0);
    const isKnown = counts.length > 0 && counts.every(({ isComplete }) => isComplete);
    return isKnown && open <= maxCountedRevocable ? open : undefined;
  }

  return {
    async listSessions(request, context) {
      const { tenantId } = callerOf(context).application;
      const { applicationId, authorizedBy, state, size = defaultPageSize, start } = request;
      const filter = {
        tenantId,
        applicationId: applicationId?.toLowerCase(),
        authorizedBy: authorizedBy?.toLowerCase(),
        authorized: state === undefined ? undefined : state === "authorized",
      };
      const scope = cursorScopeOf(context, request);
      const after = start === undefined ? undefined : cursors.read(scope, start).after;
      const { items, more } = await sessions.list({ ...filter, size, after }, context.signal);
      const total = await totalOf(request, items, more, () => count(filter, context.signal));
      // Many pages may be ready at once, and converting one takes long.
      const pause = waitForTime(tenantId);
      if (pause) {
        await pause;
      }
      const last = items.at(-1);
      return {
        pagination: {
          pageSize: size,
          ...describeTotal(total, size),
          ...(more && last && { next: cursors.encode(scope, { after: last.session.id }) }),
        },
        data: items.map(toMessage),
      };
    },

    async getSession(request, context) {
      const id = request.id.toLowerCase();
      const found = await sessions.find(id);
      if (found?.session.tenantId !== callerOf(context).application.tenantId) {
        throw sessionNotFound(id);
      }
      return toMessage(found);
    },

    async deleteSession(request, context) {
      const caller = callerOf(context);
      const id = request.id.toLowerCase();
      const isOwn = caller.session?.id === id;
      let name: string | undefined;
      const wasDeleted = await sessions.delete(
        caller.application.tenantId,
        id,
        audit(context, {
          kind: "session.deleted",
          // Anyone with a public key can open sessions and end them.
          isRecorded: (session) => !isOwn || session.authorizedAt !== undefined,
          target: ({ applicationId }) => ({ applicationId, sessionId: id, name }),
          before: (session) => stateOf(session),
          response: () => ({}),
        }),
        ({ application }) => {
          name = application.name;
          if (!isOwn) {
            withDenialTarget({ applicationId: application.id, sessionId: id, name }, () =>
              assertMayAdminister(caller, application),
            );
          }
        },
      );
      if (!wasDeleted) {
        throw sessionNotFound(id);
      }
      return {};
    },

    async revokeAllSessions(request, context) {
      const { openedOnly } = request;
      const count = await countRevocable(request, context);
      const response = ({ modifiedAt = 0 }: ApplicationRecord) => ({
        revokedBefore: toTimestamp(modifiedAt),
        count,
      });
      const revoked = await updateApplication(context, request, {
        kind: "application.sessions_revoked",
        revokes: true,
        change: ({ sessionEpoch, authorizationEpoch }) => ({
          sessionEpoch: sessionEpoch + 1,
          ...(!openedOnly && { authorizationEpoch: authorizationEpoch + 1 }),
        }),
        target: ({ id, name }) => ({ applicationId: id, name }),
        ...(openedOnly && { openedOnly }),
        response,
      });
      return response(revoked);
    },
  };
}

const convertSession = createConverter(SessionSchema, { values: { time: toTimestamp } });

function toSession(
  found: SessionWithApplication,
  grantPolicy: GrantPolicy,
): MessageInitShape<typeof SessionSchema> {
  const { session, authorizer } = found;
  return {
    ...convertSession(session),
    ...showGrants(session),
    state: session.authorizedAt === undefined ? "unauthorized" : "authorized",
    expiresAt: toTimestamp(expiryOf(found)),
    limitedByAuthorizer: (authorizer && grantPolicy === "held") || undefined,
  };
}
