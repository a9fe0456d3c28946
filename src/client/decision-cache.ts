import { type CheckRequest, contextualId } from "./check-request.js";
import type { Decision } from "./decision.js";

interface NewEntry<D> {
  readonly decision: D;
  /**
   * The ids of the application and session of the key, and of its authorizer. A
   * change of any of them invalidates the decision.
   */
  readonly principalIds: readonly (string | undefined)[];
  readonly requestedAt: number;
  /** Milliseconds from the request until the decision expires. */
  readonly lifetime: number;
}

interface Entry<D> {
  readonly decision: D;
  readonly principalIds: ReadonlySet<string>;
  readonly expiresAt: number;
}

/** A bounded LRU cache of decisions. `lru-cache` cannot invalidate by principal. */
export interface DecisionCache<D> {
  get(id: string, now: number): D | undefined;
  set(id: string, entry: NewEntry<D>): void;
  /** Removes all decisions about an application or session. */
  invalidate(principalId: string): void;
  clear(): void;
}

interface CacheLimits {
  readonly maxEntries: number;
  /** Milliseconds. */
  readonly maxAge: number;
}

export function createDecisionCache<D>({ maxEntries, maxAge }: CacheLimits): DecisionCache<D> {
  // A map iterates in insertion order: the first entry is the least recently used.
  const entries = new Map<string, Entry<D>>();
  const idsByPrincipal = new Map<string, Set<string>>();

  function remove(id: string): void {
    for (const principalId of entries.get(id)?.principalIds ?? []) {
      const ids = idsByPrincipal.get(principalId);
      ids?.delete(id);
      if (ids?.size === 0) {
        idsByPrincipal.delete(principalId);
      }
    }
    entries.delete(id);
  }

  function add(id: string, entry: Entry<D>): void {
    entries.set(id, entry);
    for (const principalId of entry.principalIds) {
      const ids = idsByPrincipal.get(principalId) ?? new Set();
      idsByPrincipal.set(principalId, ids.add(id));
    }
  }

  function evictOldest(): void {
    for (const id of entries.keys()) {
      remove(id);
      return;
    }
  }

  return {
    get(id, now) {
      const entry = entries.get(id);
      if (!entry) {
        return undefined;
      }
      if (now >= entry.expiresAt) {
        remove(id);
        return undefined;
      }
      entries.delete(id);
      entries.set(id, entry);
      return entry.decision;
    },

    set(id, { decision, principalIds, requestedAt, lifetime }) {
      remove(id);
      if (!(lifetime > 0)) {
        return;
      }
      const known = principalIds.filter((principalId) => principalId !== undefined);
      const expiresAt = requestedAt + Math.min(lifetime, maxAge);
      add(id, { decision, principalIds: new Set(known), expiresAt });
      if (entries.size > maxEntries) {
        evictOldest();
      }
    },

    invalidate(principalId) {
      for (const id of idsByPrincipal.get(principalId) ?? []) {
        remove(id);
      }
    },

    clear() {
      entries.clear();
      idsByPrincipal.clear();
    },
  };
}

/**
 * Most decisions do not depend on the context, and only the response shows
 * whether one does. So every decision is stored under the id without context.
 * One that depends on the context is also stored under the id with it; the
 * first entry then only shows which part of the context matters.
 */
export function storeDecision(
  cache: DecisionCache<Decision>,
  request: CheckRequest,
  entry: NewEntry<Decision>,
): void {
  cache.set(request.id, entry);
  if (dependsOnContext(entry.decision)) {
    cache.set(contextualId(request, entry.decision), entry);
  }
}

export function lookUpDecision(
  cache: DecisionCache<Decision>,
  request: CheckRequest,
  now: number,
): Decision | undefined {
  const decision = cache.get(request.id, now);
  return decision && dependsOnContext(decision)
    ? cache.get(contextualId(request, decision), now)
    : decision;
}

function dependsOnContext({ dependsOnOrigin, dependsOnAddress }: Decision): boolean {
  return dependsOnOrigin === true || dependsOnAddress === true;
}
