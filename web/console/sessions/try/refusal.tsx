import { problemOf } from "../../../../src/contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../../../../src/contract/problems.js";
import { Badge } from "../../ui/badge.js";
import { Problem } from "../../ui/problem.js";

/** A refusal that was to be expected, with its status. Nothing where nothing was thrown. */
export function Refusal({ of: thrown }: { readonly of: unknown }) {
  if (thrown === undefined) {
    return null;
  }
  const { code } = problemOf(thrown);
  const known = code === undefined ? undefined : problemCatalogue[code as ProblemCode];
  return (
    <>
      {known && (
        <p>
          <Badge tone="danger">
            {known.status} {code}
          </Badge>
        </p>
      )}
      <Problem of={thrown} />
    </>
  );
}
