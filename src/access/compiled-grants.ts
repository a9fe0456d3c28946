import { createGenerations } from "../generations.js";
import type { Grants } from "../store/store.js";
import { type CompiledGrants, compileGrants } from "./compile-grants.js";

/** A stored record with grants. Its version differs with each change of it. */
export interface GrantsRecord extends Grants {
  readonly id: string;
  readonly version: number;
}

/** Compiles the grants of a record once per version, as long as it is asked for often. */
export function createCompiledGrants(
  generationWeight = 500_000,
): (record: GrantsRecord) => CompiledGrants {
  const generations = createGenerations<CompiledGrants>(generationWeight);

  return (record) => {
    const { id, version } = record;
    return (
      generations.get(id, version) ??
      generations.add(id, version, compileGrants(record), weightOf(record))
    );
  };
}

/** What a rule takes by itself, in entries of an index, of which each of its permissions may get one. */
const ruleWeight = 10;

function weightOf({ rules }: Grants): number {
  return rules.reduce((weight, { permissions }) => weight + ruleWeight + permissions.length, 1);
}
