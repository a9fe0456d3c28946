import { problemOf } from "../../../../src/client/problem.js";
import { type ProblemCode, problemCatalogue } from "../../../../src/problem-catalogue.js";
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
