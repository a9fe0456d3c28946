import { callerOf, endOf } from "../caller.js";
import { nonceNotFound, nonceUsed, sessionQuotaReached, unauthenticated } from "../errors.js";
import { stateOfSession } from "../events/trail.js";
import { checkSessionMayHold, readGrants } from "../grants.js";
import { newId } from "../ids.js";
import { makeKey, parseKey } from "../keys.js";
import { readExpiry, toTimestamp } from "../moments.js";
import { SessionQuotaReached, type SessionRecord } from "../store/store.js";
import type { SessionHandlerOptions, SessionHandlers } from "./handlers.js";

/** What opens and authorizes sessions. */
export function createOpenHandlers({
  store,
  keyring,
  grantGuard,
  trailOf,
  rateLimits,
  clock,
  settings,
}: SessionHandlerOptions): Pick<SessionHandlers, "createSession" | "authorizeSession"> {
  return {
    async createSession(_request, context) {
      const { application } = callerOf(context);
      const id = newId(clock());
      const sessionKey = makeKey("ses", id);
      const nonce = makeKey("non", id);
      const answer = (session: SessionRecord) => ({
        sessionKey,
        nonce,
        expiresAt: toTimestamp(endOf({ application, session })),
        id,
      });
      const quota = application.sessionQuota ?? settings.sessionQuota;
      const creating = store.sessions.create(
        {
          id,
          tenantId: application.tenantId,
          applicationId: application.id,
          keyHash: keyring.hash(sessionKey),
          nonceHash: keyring.hash(nonce),
          ttl: settings.sessionTtl,
          quota,
        },
        trailOf(context, {
          kind: "session.created",
          target: () => ({ applicationId: application.id, sessionId: id }),
          answer,
        }),
      );
      const session = await creating.catch((error) => {
        if (error instanceof SessionQuotaReached) {
          rateLimits.noteRefusedSession();
          throw sessionQuotaReached(quota, error.wait);
        }
        throw error;
      });
      if (!session) {
        // The application was deleted after its key was checked: the key is no longer good.
        throw unauthenticated(settings.keyHeader);
      }
      return answer(session);
    },

    async authorizeSession(request, context) {
      const caller = callerOf(context);
      const grants = readGrants(request);
      checkSessionMayHold(grants);
      grantGuard.checkMayDelegate(caller, grants);
      const expiresAt = await readExpiry(request.expiresAt, store, settings.sessionMaxTtl);

      const nonce = parseKey(request.nonce);
      if (nonce?.kind !== "non") {
        throw nonceNotFound();
      }
      const outcome = await store.sessions.authorize(
        {
          sessionId: nonce.id,
          tenantId: caller.application.tenantId,
          nonceHashes: keyring.hashes(request.nonce),
          authorizedBy: caller.application.id,
          expiresAt,
          ...grants,
        },
        trailOf(context, {
          kind: "session.authorized",
          target: ({ id, applicationId }) => ({ applicationId, sessionId: id }),
          after: stateOfSession,
          answer: () => ({}),
        }),
      );
      if (outcome === "unknown") {
        throw nonceNotFound();
      }
      if (outcome === "used") {
        throw nonceUsed();
      }
      return {};
    },
  };
}
