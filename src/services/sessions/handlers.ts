import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type RevokeAllSessionsRequest,
  SessionSchema,
  type SessionService,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { expiryOf } from "../../auth/caller.js";
import { assertMayAdminister, assertSessionMayHold } from "../../auth/grants.js";
import { formatKey, generateSecret } from "../../auth/keys.js";
import { callerOf, callOf } from "../../call.js";
import type { GrantPolicy } from "../../config/settings.js";
import { parseKey } from "../../contract/key-format.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import { nonceNotFound, nonceUsed, sessionNotFound, sessionQuotaReached } from "../../errors.js";
import { waitForTime } from "../../lib/event-loop.js";
import { withTimeout } from "../../lib/timeout.js";
import { newId } from "../../lib/uuid.js";
import { throwIfRefused } from "../../limits/rate-limits.js";
import type { SessionLimit } from "../../store/port/change.js";
import { SessionQuotaReached } from "../../store/port/errors.js";
import {
  type ApplicationRecord,
  authorizedSession,
  newSession,
  type SessionWithApplication,
} from "../../store/port/records.js";
import type { SessionFilter } from "../../store/port/sessions.js";
import { findOversizedGrants } from "../../validation/grants-size.js";
import { readExpiry, toTimestamp } from "../../validation/time.js";
import { throwViolations } from "../../validation/validate.js";
import { createUpdateApplication } from "../applications/update-application.js";
import { principalOf } from "../commit.js";
import { stateOf } from "../events/audit.js";
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
  | "commit"
  | "rateLimits"
  | "countSession"
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
  commit,
  rateLimits,
  countSession,
  clock,
  settings,
  readAddressOf,
}: SetupDependencies): Pick<SessionHandlers, "createSession" | "authorizeSession"> {
  const limitsOf = createOpeningLimits({ settings, storeId: store.id, readAddressOf });

  /** Converts the refusal of a quota. */
  function refuseSession(error: unknown): never {
    if (error instanceof SessionQuotaReached) {
      rateLimits.countRefusedSession(error.quota);
      throw sessionQuotaReached(error.quota, error.limit, error.wait);
    }
    throw error;
  }

  return {
    async createSession(_request, context) {
      const { call, caller } = callOf(context);
      throwIfRefused(await rateLimits.countOpenedSession(caller, call.peer));
      const { tenantId } = caller.application;
      const [keySecret, nonceSecret] = [generateSecret(), generateSecret()];
      const opening = commit(context, {
        target: { kind: "session", id: newId(clock()) },
        creates: true,
        // No event: anyone with a public key could fill the log.
        decide({ id }, now, { application }) {
          const sessionKey = formatKey("ses", id, keySecret);
          const nonce = formatKey("non", id, nonceSecret);
          const { networkHash, limits } = limitsOf(application, call.peer);
          const [keyHash, nonceHash] = [keyring.hash(sessionKey), keyring.hash(nonce)];
          const { id: applicationId, sessionEpoch } = application;
          const session = newSession(
            {
              id,
              tenantId,
              applicationId,
              keyHash,
              nonceHash,
              networkHash,
              ttl: settings.sessionTtl,
            },
            sessionEpoch,
            now,
          );
          return {
            put: session,
            provided: limits,
            reply: {
              sessionKey,
              nonce,
              expiresAt: toTimestamp(expiryOf({ application, session })),
              id,
            },
          };
        },
      });
      const opened = await opening.catch(refuseSession);
      countSession("opened");
      return opened;
    },

    async authorizeSession(request, context) {
      const caller = callerOf(context);
      const grants = readGrants(request);
      const expiry = await readExpiry(request.expiresAt, store, settings.sessionMaxTtl);
      const { expiresAt, expiryViolations } = expiry;
      throwViolations([...findOversizedGrants(grants, settings.grantsLimit), ...expiryViolations]);
      assertSessionMayHold(grants);
      grantGuard.assertMayDelegate(caller, grants);
      const parsed = parseKey(request.nonce);
      if (parsed?.type !== "non") {
        throw nonceNotFound();
      }
      const authorizing = commit(context, {
        target: { kind: "session", id: parsed.id },
        decide({ target }, now, { application: authorizer }) {
          if (!target || !keyring.matches(request.nonce, target.session.nonceHash)) {
            throw nonceNotFound();
          }
          const { session, application } = target;
          if (session.authorizedAt !== undefined) {
            throw nonceUsed();
          }
          const authorized = authorizedSession(session, { ...grants, authorizer, expiresAt }, now);
          return {
            put: authorized,
            provided: [authorizedLimit(application, settings.sessionQuota)],
            event: {
              kind: "session.authorized",
              target: principalOf(target),
              after: stateOf(authorized),
            },
            reply: { sessionId: session.id },
          };
        },
      });
      const authorized = await authorizing.catch(refuseSession);
      countSession("authorized");
      return authorized;
    },
  };
}

/** The limit of authorized sessions of an application. */
function authorizedLimit(
  { id: applicationId, sessionEpoch: epoch, sessionQuota }: ApplicationRecord,
  defaultQuota: number,
): SessionLimit {
  return { quota: "authorized", applicationId, epoch, limit: sessionQuota ?? defaultQuota };
}

/** How many sessions a revocation counts, and for how many milliseconds: it must not wait for more. */
const maxCountedRevocable = 1_000;
const countTimeoutMs = 200;

/** Handlers that list, show, delete and revoke sessions. */
function createManageHandlers({
  store,
  grantGuard,
  commit,
  createSealer,
  settings,
}: Pick<Dependencies, "store" | "grantGuard" | "commit" | "createSealer" | "settings">): Pick<
  SessionHandlers,
  "listSessions" | "getSession" | "deleteSession" | "revokeAllSessions"
> {
  const { sessions } = store;
  const cursors = createCursors(createSealer, "sessions");
  const toMessage = (found: SessionWithApplication) => toSession(found, settings.grantPolicy);
  const updateApplication = createUpdateApplication({ commit, grantGuard });

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
      return commit(context, {
        target: { kind: "session", id },
        revokes: true,
        decide({ target }) {
          if (!target) {
            throw sessionNotFound(id);
          }
          const { session, application } = target;
          if (!isOwn) {
            assertMayAdminister(caller, application);
          }
          // Anyone with a public key can open sessions and revoke them.
          const isRecorded = !isOwn || session.authorizedAt !== undefined;
          return {
            put: null,
            event: isRecorded
              ? { kind: "session.deleted", target: principalOf(target), before: stateOf(session) }
              : undefined,
            reply: {},
          };
        },
      });
    },

    async revokeAllSessions(request, context) {
      const { openedOnly } = request;
      const count = await countRevocable(request, context);
      return updateApplication(context, request, {
        revokes: true,
        change: ({ sessionEpoch, authorizationEpoch }) => ({
          sessionEpoch: sessionEpoch + 1,
          ...(!openedOnly && { authorizationEpoch: authorizationEpoch + 1 }),
        }),
        event: () => ({
          kind: "application.sessions_revoked",
          ...(openedOnly && { openedOnly }),
        }),
        reply: ({ modifiedAt = 0 }) => ({ revokedBefore: toTimestamp(modifiedAt), count }),
      });
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
