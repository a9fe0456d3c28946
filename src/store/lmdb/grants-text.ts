import { type Grants, ruleFields } from "../../contract/grants.js";

/** Grants in JSON, each list by itself, as the API shows them: what is in them always stands in the same order. */
export interface GrantsText {
  readonly permissions: string;
  readonly rules: string;
}

const emptyList = "[]";

export function toGrantsText({ permissions, rules }: Grants): GrantsText {
  return {
    permissions: permissions.length === 0 ? emptyList : JSON.stringify(permissions),
    rules: rules.length === 0 ? emptyList : JSON.stringify(rules.map(ruleFields)),
  };
}

/** Reads a list that lies between two places of a row. */
export function readList<T>(row: Buffer, start: number, end: number): readonly T[] {
  return end - start === emptyList.length ? [] : JSON.parse(row.toString("utf8", start, end));
}
