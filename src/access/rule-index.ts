import { findByValue, indexByLimit, type LimitIndex } from "./limit-index.js";
import { type Limit, type Scope, type Token, withSlashes } from "./scope.js";

/**
 * Tells which rule of a list is the first to match a token. Rules are known by
 * their rank in the list; {@link noRank} comes after all of them.
 */
export interface RuleIndex {
  /** The first rule that matches everything, tokens or not. */
  readonly everything: number;
  /** The first rule that matches every token. */
  readonly everyToken: number;
  /** The rules with a limit on one attribute only. */
  readonly byId: LimitIndex<number>;
  readonly byContainer: LimitIndex<number>;
  /** The rules with a limit on both. */
  readonly byBoth: LimitIndex<SameId>;
}

/** The rules with the same limit on the id, each with one on the container too. */
interface SameId {
  readonly byContainer: LimitIndex<number>;
  /** The rules with the next wider limit on the id. */
  readonly wider: SameId | undefined;
}

const noRank = Number.POSITIVE_INFINITY;

/** Indexes the scopes of rules. Those without one match nothing. */
export function indexRules(scopes: readonly (Scope | undefined)[]): RuleIndex {
  const byId: [Limit, number][] = [];
  const byContainer: [Limit, number][] = [];
  const byBoth: [Limit, [Limit, number]][] = [];
  let everything = noRank;
  let everyToken = noRank;
  for (const [rank, scope] of scopes.entries()) {
    if (scope?.id && scope.container) {
      byBoth.push([scope.id, [scope.container, rank]]);
    } else if (scope?.id) {
      byId.push([scope.id, rank]);
    } else if (scope?.container) {
      byContainer.push([scope.container, rank]);
    } else if (scope) {
      everyToken = Math.min(everyToken, rank);
      everything = scope.tokensOnly ? everything : Math.min(everything, rank);
    }
  }
  return {
    everything,
    everyToken,
    byId: indexByLimit(byId, firstRank),
    byContainer: indexByLimit(byContainer, firstRank),
    byBoth: indexByLimit(byBoth, (rules, wider) => ({
      byContainer: indexByLimit(rules, firstRank),
      wider,
    })),
  };
}

/** The rank of the first rule that matches the token. */
export function firstMatch(index: RuleIndex, { id, container }: Token): number {
  const path = container === undefined ? undefined : withSlashes(container);
  let first = Math.min(index.everyToken, find(index.byId, id), find(index.byContainer, path));
  let sameId = id === undefined ? undefined : findByValue(index.byBoth, id);
  while (sameId) {
    first = Math.min(first, find(sameId.byContainer, path));
    sameId = sameId.wider;
  }
  return first;
}

function firstRank(ranks: readonly number[], wider: number | undefined): number {
  return Math.min(...ranks, wider ?? noRank);
}

function find(index: LimitIndex<number>, value: string | undefined): number {
  return value === undefined ? noRank : (findByValue(index, value) ?? noRank);
}
