import { type CompiledGrants, compileGrants, mostTried } from "../../contract/decisions/decide.js";
import type { Grants, RuleRecord } from "../../contract/grants.js";
import { createGenerationalCache } from "../../lib/cache.js";
import { cacheCounts } from "../../telemetry/metrics/caches.js";

/** A stored record with grants. Its version differs with each change of it. */
export interface GrantsRecord extends Grants {
  readonly id: string;
  readonly version: number;
}

interface GrantCacheOptions {
  /** Bytes that each of two generations may take, about. */
  readonly generationWeight?: number;
  /** Of so many that are compiled one is kept. */
  readonly admitEvery?: number;
}

/** Compiles the grants of a record once per version, as long as it is asked for often. */
export function createGrantCache({
  generationWeight = 22 * 1024 * 1024,
  admitEvery = 8,
}: GrantCacheOptions = {}): (record: GrantsRecord) => CompiledGrants {
  const generations = createGenerationalCache<CompiledGrants>(
    generationWeight,
    admitEvery,
    cacheCounts.rules,
  );

  return (record) => {
    const { id, version } = record;
    const kept = generations.get(id, version);
    if (kept) {
      return kept;
    }
    const compiled = compileGrants(record);
    return generations.shouldAdmit()
      ? generations.add(id, version, compiled, weightOf(record))
      : compiled;
  };
}

/** What a record, a rule, and a permission in a rule take by themselves, in bytes. */
const recordWeight = 400;
const ruleWeight = 250;
const permissionWeight = 16;
/** What a permission in a rule takes in an index. */
const indexWeight = 200;

function weightOf({ rules }: Grants): number {
  const each = permissionWeight + (rules.length > mostTried ? indexWeight : 0);
  return rules.reduce(
    (weight, rule) => weight + ruleWeight + rule.permissions.length * each + textIn(rule),
    recordWeight,
  );
}

/** How much text a rule brings along. */
function textIn({ description = "", container = "", conditions }: RuleRecord): number {
  return conditions.reduce(
    (length, { value }) => length + value.length,
    description.length + container.length,
  );
}
