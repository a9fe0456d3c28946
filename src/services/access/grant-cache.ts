import {
  type CompiledGrants,
  compileGrants,
  maxLinearRules,
} from "../../contract/decisions/decide.js";
import type { Grants, RuleRecord } from "../../contract/grants.js";
import { cacheCountsOf, createGenerationalCache } from "../../lib/cache.js";

/** A stored record with grants. Every change increments its version. */
export interface GrantsRecord extends Grants {
  readonly id: string;
  readonly version: number;
}

/** Returns the compiled grants of a record. */
export type CachedGrantsOf = (record: GrantsRecord) => CachedGrants;

interface GrantCacheOptions {
  /** Approximate size of each of the two generations in bytes. */
  readonly generationWeight?: number;
  /** Caches one of this many compiled records. */
  readonly admitEvery?: number;
}

/** Compiled grants, with the ids of rules. */
export interface CachedGrants extends CompiledGrants {
  /** The ids of rules that decided, by index. Few rules decide, so they are computed on first use. */
  readonly ruleIds: Map<number, string>;
}

/** Caches the compiled grants of frequently checked records, by id and version. */
export function createGrantCache({
  generationWeight = 22 * 1024 * 1024,
  admitEvery = 8,
}: GrantCacheOptions = {}): CachedGrantsOf {
  const cache = createGenerationalCache<CachedGrants>(
    generationWeight,
    admitEvery,
    cacheCountsOf("rules"),
  );

  return (record) => {
    const { id, version } = record;
    const cached = cache.get(id, version);
    if (cached) {
      return cached;
    }
    const compiled = { ...compileGrants(record), ruleIds: new Map<number, string>() };
    return cache.shouldAdmit() ? cache.add(id, version, compiled, weightOf(record)) : compiled;
  };
}

/** Estimated sizes in bytes of a record, a rule, and a permission in a rule. */
const recordWeight = 400;
const ruleWeight = 250;
const permissionWeight = 16;
/** Estimated size of an index entry. */
const indexWeight = 200;

/** The approximate size of compiled grants in bytes. */
export function weightOf({ rules }: Grants): number {
  const each = permissionWeight + (rules.length > maxLinearRules ? indexWeight : 0);
  return rules.reduce(
    (weight, rule) => weight + ruleWeight + rule.permissions.length * each + textIn(rule),
    recordWeight,
  );
}

/** The length of a rule's text. */
function textIn({ description = "", container = "", conditions }: RuleRecord): number {
  return conditions.reduce(
    (length, { value }) => length + value.length,
    description.length + container.length,
  );
}
