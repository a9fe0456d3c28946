import { type Scope, type StringMatcher, type Token, withSlashes } from "./scope.js";

/**
 * Finds the first rule of a list that matches a token. Rules are identified by
 * their rank in the list; {@link noRank} comes after all of them.
 */
export interface RuleIndex {
  /** The first rule that matches everything, with or without a token. */
  readonly everything: number;
  /** The first rule that matches every token. */
  readonly everyToken: number;
  /** The rules with a matcher for one attribute. */
  readonly byId: MatcherIndex<number>;
  readonly byContainer: MatcherIndex<number>;
  /** The rules with a matcher for both attributes. */
  readonly byBoth: MatcherIndex<SameId>;
}

/** Rules with the same matcher for the id and any matcher for the container. */
interface SameId {
  readonly byContainer: MatcherIndex<number>;
  /** The rules with the next wider matcher for the id. */
  readonly wider: SameId | undefined;
}

const noRank = Number.POSITIVE_INFINITY;

/** Indexes the scopes of rules. Rules without a scope match nothing. */
export function indexRules(scopes: readonly (Scope | undefined)[]): RuleIndex {
  const byId: [StringMatcher, number][] = [];
  const byContainer: [StringMatcher, number][] = [];
  const byBoth: [StringMatcher, [StringMatcher, number]][] = [];
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
    byId: indexByMatcher(byId, firstRank),
    byContainer: indexByMatcher(byContainer, firstRank),
    byBoth: indexByMatcher(byBoth, (rules, wider) => ({
      byContainer: indexByMatcher(rules, firstRank),
      wider,
    })),
  };
}

/** Returns the rank of the first rule that matches the token. */
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

function find(index: MatcherIndex<number>, value: string | undefined): number {
  return value === undefined ? noRank : (findByValue(index, value) ?? noRank);
}

/**
 * Finds the entries of all matchers that match a value, in logarithmic time.
 *
 * The matchers that match a value are nested: each includes the next narrower
 * one. Entries are merged with those of the wider matchers when the index is
 * built, so one lookup of the narrowest matcher is enough.
 */
interface MatcherIndex<Found> {
  readonly exact: ReadonlyMap<string, Found>;
  /**
   * Strings with the same prefix are adjacent in sorted order, so the prefixes
   * divide all strings into intervals in which the same matchers match. None
   * matches before the first interval.
   */
  readonly intervals: readonly Interval<Found>[];
}

interface Interval<Found> {
  /** The first string of the interval, which ends at the start of the next. It is empty if both are equal. */
  readonly from: string;
  readonly found: Found | undefined;
}

/** Merges the entries of a matcher with the result for the next wider matcher. */
type Merge<Entry, Found> = (entries: Entry[], wider: Found | undefined) => Found;

function indexByMatcher<Entry, Found>(
  entries: readonly (readonly [StringMatcher, Entry])[],
  merge: Merge<Entry, Found>,
): MatcherIndex<Found> {
  const intervals = buildIntervals(groupByValue(entries, false), merge);
  const exact = new Map<string, Found>();
  for (const [value, group] of groupByValue(entries, true)) {
    exact.set(value, merge(group, findInterval(value, intervals)));
  }
  return { exact, intervals };
}

/** Returns the merged result for all matchers that match the value. */
function findByValue<Found>(index: MatcherIndex<Found>, value: string): Found | undefined {
  return index.exact.get(value) ?? findInterval(value, index.intervals);
}

function groupByValue<Entry>(
  entries: readonly (readonly [StringMatcher, Entry])[],
  exact: boolean,
): Map<string, Entry[]> {
  const groups = new Map<string, Entry[]>();
  for (const [matcher, entry] of entries) {
    if (matcher.exact === exact) {
      const group = groups.get(matcher.value);
      if (group) {
        group.push(entry);
      } else {
        groups.set(matcher.value, [entry]);
      }
    }
  }
  return groups;
}

/** A stack of nested prefixes, the narrowest on top. */
interface PrefixStack<Found> {
  readonly prefix: string;
  readonly found: Found;
  readonly wider: PrefixStack<Found> | undefined;
}

function buildIntervals<Entry, Found>(
  entriesByPrefix: ReadonlyMap<string, Entry[]>,
  merge: Merge<Entry, Found>,
): Interval<Found>[] {
  const intervals: Interval<Found>[] = [];

  function pop({ prefix, wider }: PrefixStack<Found>): PrefixStack<Found> | undefined {
    const next = firstStringAfter(prefix);
    if (next !== undefined) {
      intervals.push({ from: next, found: wider?.found });
    }
    return wider;
  }

  let top: PrefixStack<Found> | undefined;
  for (const [prefix, entries] of [...entriesByPrefix].sort(byPrefix)) {
    while (top && !prefix.startsWith(top.prefix)) {
      top = pop(top);
    }
    top = { prefix, found: merge(entries, top?.found), wider: top };
    intervals.push({ from: prefix, found: top.found });
  }
  while (top) {
    top = pop(top);
  }
  return intervals;
}

/** By code units, as `<` and `startsWith` compare. */
function byPrefix([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}

/** The first string that sorts after all strings with this prefix, if there is one. */
function firstStringAfter(prefix: string): string | undefined {
  const incrementable = prefix.replace(/\uffff+$/, "");
  const last = incrementable.length - 1;
  return last < 0
    ? undefined
    : incrementable.slice(0, last) + String.fromCharCode(incrementable.charCodeAt(last) + 1);
}

/** Binary search for the last interval that does not start after the value. */
function findInterval<Found>(
  value: string,
  intervals: readonly Interval<Found>[],
): Found | undefined {
  let low = 0;
  let high = intervals.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    // biome-ignore lint/style/noNonNullAssertion: it is within bounds
    if (intervals[middle]!.from <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return intervals[low - 1]?.found;
}
