import { listOf } from "./prose.js";

interface Limits {
  readonly gt?: number | string;
  readonly gte?: number | string;
  readonly lt?: number | string;
  readonly lte?: number | string;
}

/** Describes the bounds of a number or duration. */
export function limitsOf({ gt, gte, lt, lte }: Limits): string {
  const limits = Object.entries({
    "more than": gt,
    "at least": gte,
    "less than": lt,
    "at most": lte,
  }).flatMap(([words, limit]) => (limit === undefined ? [] : `${words} ${limit}`));
  return limits.length > 0 ? `Must be ${listOf(limits, "conjunction")}.` : "";
}
