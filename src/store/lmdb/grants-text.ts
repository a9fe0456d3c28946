import { type Grants, ruleFields } from "../../contract/grants.js";

/** The lists of grants as the JSON of the REST API, with members in a fixed order. */
interface GrantsText {
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

/** Parses the list between two offsets of a row. */
export function readList<T>(row: Buffer, start: number, end: number): readonly T[] {
  return end - start === emptyList.length ? [] : JSON.parse(row.toString("utf8", start, end));
}
