import { createGenerations } from "../generations.js";
import type { Grants } from "../store/store.js";
import { type CompiledGrants, compileGrants } from "./compile-grants.js";

/** A stored record with grants. Its version differs with each change of it. */
export interface GrantsRecord extends Grants {
  readonly id: string;
  readonly version: number;
}

interface CompiledGrantsOptions {
  /** What each of two generations may weigh: with rules as they mostly are, 15 MB each. */
  readonly generationWeight?: number;
  /** Of so many that are compiled one is kept: soon all that are asked for often, and few that are asked for once. */
  readonly compiledPerKept?: number;
}

/** Compiles the grants of a record once per version, as long as it is asked for often. */
export function createCompiledGrants({
  generationWeight = 250_000,
  compiledPerKept = 8,
}: CompiledGrantsOptions = {}): (record: GrantsRecord) => CompiledGrants {
  const generations = createGenerations<CompiledGrants>(generationWeight);
  let compilations = 0;

  return (record) => {
    const { id, version } = record;
    const kept = generations.get(id, version);
    if (kept) {
      return kept;
    }
    const compiled = compileGrants(record);
    return ++compilations % compiledPerKept === 0
      ? generations.add(id, version, compiled, weightOf(record))
      : compiled;
  };
}

/** What a rule takes by itself, in entries of an index, of which each of its permissions may get one. */
const ruleWeight = 10;

function weightOf({ rules }: Grants): number {
  return rules.reduce((weight, { permissions }) => weight + ruleWeight + permissions.length, 1);
}
