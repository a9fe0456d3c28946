import type { ServiceImpl } from "@connectrpc/connect";
import type { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { callerOf } from "../caller.js";
import type { Settings } from "../config.js";
import { nonceNotFound, nonceUsed, unauthenticated } from "../errors.js";
import { type GrantGuard, readGrants } from "../grants.js";
import { newId } from "../ids.js";
import { type Keyring, makeKey, parseKey } from "../keys.js";
import { readExpiry, toTimestamp } from "../moments.js";
import type { Clock, Store } from "../store/store.js";

interface SessionHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly grantGuard: GrantGuard;
  readonly clock: Clock;
  readonly settings: Settings;
}

export function createSessionHandlers({
  store,
  keyring,
  grantGuard,
  clock,
  settings,
}: SessionHandlerOptions): ServiceImpl<typeof SessionService> {
  return {
    async createSession(_request, context) {
      const { application } = callerOf(context);
      const id = newId(clock());
      const sessionKey = makeKey("ses", id);
      const nonce = makeKey("non", id);
      const session = await store.sessions.create({
        id,
        tenantId: application.tenantId,
        applicationId: application.id,
        keyHash: keyring.hash(sessionKey),
        nonceHash: keyring.hash(nonce),
        ttl: settings.sessionTtl,
      });
      if (!session) {
        // The application was deleted after its key was checked: the key is no longer good.
        throw unauthenticated(settings.keyHeader);
      }
      return { sessionKey, nonce, expiresAt: toTimestamp(session.expiresAt) };
    },

    async authorizeSession(request, context) {
      const caller = callerOf(context);
      const grants = readGrants(request);
      grantGuard.checkMayDelegate(caller, grants);
      const expiresAt = await readExpiry(request.expiresAt, store, settings.sessionMaxTtl);

      const nonce = parseKey(request.nonce);
      if (nonce?.kind !== "non") {
        throw nonceNotFound();
      }
      const outcome = await store.sessions.authorize({
        sessionId: nonce.id,
        tenantId: caller.application.tenantId,
        nonceHashes: keyring.hashes(request.nonce),
        authorizedBy: caller.application.id,
        expiresAt,
        ...grants,
      });
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
