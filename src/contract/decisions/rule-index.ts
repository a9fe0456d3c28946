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

/**
 * Finds what is filed under the limits that a value meets, at a cost that
 * hardly grows with the number of limits.
 *
 * Of the limits that a value meets each includes the next narrower one. So it
 * is enough to find the narrowest, if what is found there was joined with
 * what is found at the wider ones beforehand.
 */
interface LimitIndex<Found> {
  readonly exact: ReadonlyMap<string, Found>;
  /**
   * Texts with the same start stand together when all texts are sorted. The
   * starts thus cut the line of all texts into stretches, in each of which the
   * same limits are met. Before the first stretch none is.
   */
  readonly stretches: readonly Stretch<Found>[];
}

interface Stretch<Found> {
  /** The first text of the stretch, which lasts up to the next one: not at all where that is the same. */
  readonly from: string;
  readonly found: Found | undefined;
}

/** What belongs to a limit: what is filed under it, joined with what belongs to the next wider one. */
type Join<Filed, Found> = (filed: Filed[], wider: Found | undefined) => Found;

function indexByLimit<Filed, Found>(
  entries: readonly (readonly [Limit, Filed])[],
  join: Join<Filed, Found>,
): LimitIndex<Found> {
  const stretches = cutIntoStretches(groupByValue(entries, false), join);
  const exact = new Map<string, Found>();
  for (const [value, filed] of groupByValue(entries, true)) {
    exact.set(value, join(filed, stretchOf(value, stretches)));
  }
  return { exact, stretches };
}

/** What belongs to the narrowest limit that the value meets, and so to all that it meets. */
function findByValue<Found>(index: LimitIndex<Found>, value: string): Found | undefined {
  return index.exact.get(value) ?? stretchOf(value, index.stretches);
}

function groupByValue<Filed>(
  entries: readonly (readonly [Limit, Filed])[],
  exact: boolean,
): Map<string, Filed[]> {
  const groups = new Map<string, Filed[]>();
  for (const [limit, filed] of entries) {
    if (limit.exact === exact) {
      const group = groups.get(limit.value);
      if (group) {
        group.push(filed);
      } else {
        groups.set(limit.value, [filed]);
      }
    }
  }
  return groups;
}

/** A start that the text at hand has, and the wider ones that it then has too. */
interface Open<Found> {
  readonly start: string;
  readonly found: Found;
  readonly wider: Open<Found> | undefined;
}

function cutIntoStretches<Filed, Found>(
  filedByStart: ReadonlyMap<string, Filed[]>,
  join: Join<Filed, Found>,
): Stretch<Found>[] {
  const stretches: Stretch<Found>[] = [];

  function leave({ start, wider }: Open<Found>): Open<Found> | undefined {
    const next = firstTextAfter(start);
    if (next !== undefined) {
      stretches.push({ from: next, found: wider?.found });
    }
    return wider;
  }

  let open: Open<Found> | undefined;
  for (const [start, filed] of [...filedByStart].sort(byText)) {
    while (open && !start.startsWith(open.start)) {
      open = leave(open);
    }
    open = { start, found: join(filed, open?.found), wider: open };
    stretches.push({ from: start, found: open.found });
  }
  while (open) {
    open = leave(open);
  }
  return stretches;
}

/** By code units, as `<` compares and as `startsWith` counts. */
function byText([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** The first text that sorts after all that start so, or `undefined` where there is none. */
function firstTextAfter(start: string): string | undefined {
  const raisable = start.replace(/\uffff+$/, "");
  const last = raisable.length - 1;
  return last < 0
    ? undefined
    : raisable.slice(0, last) + String.fromCharCode(raisable.charCodeAt(last) + 1);
}

/** What is found in the last stretch that does not begin after the value. */
function stretchOf<Found>(value: string, stretches: readonly Stretch<Found>[]): Found | undefined {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    // biome-ignore lint/style/noNonNullAssertion: it is within bounds
    if (stretches[middle]!.from <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return stretches[low - 1]?.found;
}
