import type { Client } from "@connectrpc/connect";
import type { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import {
  type CheckRequest,
  contextualId,
  fullContext,
  parseCheckRequest,
  principalIdOf,
  type RequestContext,
  type Token,
} from "./check-request.js";
import type { CredentialWatch } from "./credential-watch.js";
import { type Decision, lifetimeOf, toDecision } from "./decision.js";
import { type DecisionCache, lookUpDecision, storeDecision } from "./decision-cache.js";
import { deny, failClosed } from "./fail-closed.js";

/** Checks the keys that your service receives. */
export interface Guard {
  /**
   * Checks whether a key has a permission, optionally on a token. Never throws:
   * if a check fails, access is denied, as it is without a key. A key that is
   * restricted to origins or networks is denied unless the context is given.
   */
  check(
    key: string | undefined,
    permission: string,
    token?: Token,
    context?: RequestContext,
  ): Promise<Decision>;

  /**
   * Resolves when the cache is in use or the guard is closed. Rejects with a `ConnectError` if Latchkey refuses the
   * key of the guard, or the key lacks `access:check`. Waiting for it is optional. It keeps the process alive.
   */
  ready(): Promise<void>;

  /** Closes all connections. Later checks are denied. */
  close(): Promise<void>;
}

interface GuardParts {
  readonly access: Pick<Client<typeof AccessService>, "checkAccess">;
  readonly watch: CredentialWatch;
  readonly cache: DecisionCache<Decision>;
  /** Milliseconds. */
  readonly maxStaleness: number;
  /** Milliseconds. */
  readonly timeout: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
}

/** A call to the service without a response yet. */
interface PendingCheck {
  readonly requestedAt: number;
  readonly epoch: number;
  readonly decision: Promise<Decision>;
}

/** Creates a guard from its parts. The caller opens and closes the connections. */
export function createGuardFromParts(parts: GuardParts): Guard {
  const { access, watch, cache, maxStaleness, timeout, now } = parts;
  const pending = new Map<string, PendingCheck>();
  let isClosed = false;

  function fromCache(request: CheckRequest): Decision | undefined {
    const time = now();
    const staleness = time - watch.completeUntil();
    const decision = staleness <= maxStaleness ? lookUpDecision(cache, request, time) : undefined;
    return decision && { ...decision, source: "cache", staleness };
  }

  async function fromService(request: CheckRequest, principalId: string): Promise<Decision> {
    const { requestedAt, decision } = findPending(request) ?? startCheck(request, principalId);
    return { ...(await decision), staleness: now() - requestedAt };
  }

  /** An identical pending check, if its result would be fresh enough for the cache. */
  function findPending(request: CheckRequest): PendingCheck | undefined {
    const check = pending.get(contextualId(request, fullContext));
    const oldest = now() - maxStaleness;
    const isFresh =
      check &&
      check.requestedAt >= oldest &&
      watch.completeUntil() >= oldest &&
      watch.epoch() === check.epoch;
    return isFresh ? check : undefined;
  }

  function startCheck(request: CheckRequest, principalId: string): PendingCheck {
    const id = contextualId(request, fullContext);
    const requestedAt = now();
    const epoch = watch.epoch();
    const decision = callService(request, principalId, requestedAt, epoch).finally(() => {
      if (pending.get(id) === check) {
        pending.delete(id);
      }
    });
    const check = { requestedAt, epoch, decision };
    pending.set(id, check);
    return check;
  }

  async function callService(
    request: CheckRequest,
    principalId: string,
    requestedAt: number,
    epoch: number,
  ): Promise<Decision> {
    const { key, permission, token, context } = request;
    const principal = { case: "key", value: key } as const;
    const message = { principal, permission, ...(token && { token }), ...context };
    const response = await access.checkAccess(message, { timeoutMs: timeout });
    const decision = toDecision(response);
    const principalIds = [
      principalId,
      decision.applicationId,
      decision.sessionId,
      decision.authorizedBy,
    ];
    // A change reported meanwhile may have happened before or after the service decided.
    if (!isClosed && !watch.changedSince(epoch, principalIds)) {
      const lifetime = lifetimeOf(response);
      storeDecision(cache, request, { decision, principalIds, requestedAt, lifetime });
    }
    return decision;
  }

  return {
    async check(key, permission, token, context) {
      if (isClosed) {
        return deny("unavailable", "The guard is closed.");
      }
      try {
        const request = parseCheckRequest(key, permission, token, context);
        if ("reason" in request) {
          return deny(request.reason, request.detail);
        }
        const cached = fromCache(request);
        if (cached) {
          return cached;
        }
        const principalId = principalIdOf(request);
        if (typeof principalId !== "string") {
          return deny(principalId.reason, principalId.detail);
        }
        return await fromService(request, principalId);
      } catch (error) {
        return failClosed(error);
      }
    },

    ready: () => watch.ready(),

    async close() {
      isClosed = true;
      await watch.close();
      cache.clear();
    },
  };
}
