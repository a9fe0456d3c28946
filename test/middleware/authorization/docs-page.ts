import type { DescMethod } from "@bufbuild/protobuf";
import { accessOf, methodName } from "../../../src/contract/methods.js";
import { type CallerColumn, callerColumns } from "./callers.js";
import type { Outcome } from "./expected-outcome.js";
import type { Cell } from "./matrix.js";
import { signedMethod } from "./unauthenticated-methods.js";

const symbols: Readonly<Record<string, string>> = { done: "✓", own: "own", impossible: "–" };

/** Renders docs/reference/authorization.md from the recorded outcomes. */
export function renderPage(
  methods: readonly DescMethod[],
  cells: readonly Cell[],
  unauthenticated: readonly string[],
): string {
  const refused = callerColumns.filter((column) => isAlwaysUnauthenticated(column, cells));
  const others = callerColumns.filter((column) => !refused.includes(column));
  checkDeniedWithoutPermission(others, cells);
  return `# Authorization

Who may call what. \`test/middleware/authorization/authorization.test.ts\` generates this page (\`npm run docs:authorization\`): it calls every method as
every kind of caller, over REST and gRPC, with a valid request for an application or session of the first tenant. The test
fails if a result differs from the contract or from this page.

## Always refused

Every method refuses these callers with 401 (gRPC \`UNAUTHENTICATED\`). Expired and revoked keys are of a type that the method
accepts.

${renderTable(["Caller", "Description"], refused.map(describeColumn))}

## Other callers

${renderTable(["Caller", "Description"], others.map(describeColumn))}

The table shows callers that hold the required permission and no other permission of this service (except *last manager*).
Without the required permission each of them gets 403, even with all others (except *own session*).

| Result | Meaning |
|---|---|
| ✓ | Success. |
| own | Success; the response contains nothing of the other tenant. |
| 403, 404, 409 | Refused with this status; over gRPC \`PERMISSION_DENIED\`, \`NOT_FOUND\` or \`FAILED_PRECONDITION\`. |
| – | Not possible: this type of caller cannot hold the permission. |

${renderTable(
  ["Method", "Requires", ...others.map(({ name }) => name)],
  methods.map((method) => renderRow(method, others, cells)),
)}

## No key required

These succeed for everyone, whatever key is sent. So do the pages below \`/console\` and \`/docs\`. \`/metrics\` returns
404 if it is off or served on a separate port.
\`${methodName(signedMethod)}\` needs no key either, but a [signature](../guides/respond-to-a-leaked-key.md#github-secret-scanning).

${unauthenticated.map((name) => `- \`${name}\``).join("\n")}
`;
}

function describeColumn({ name, description }: CallerColumn): string[] {
  return [name, description];
}

/** Whether every method refuses the caller with 401, except in impossible combinations. */
function isAlwaysUnauthenticated(column: CallerColumn, cells: readonly Cell[]): boolean {
  const outcomes = cells.filter((cell) => cell.column === column).map(({ actual }) => actual);
  return outcomes.every((outcome) => outcome === 401 || outcome === "impossible");
}

/** The page states this rule in a sentence, so it must have no exception. */
function checkDeniedWithoutPermission(
  columns: readonly CallerColumn[],
  cells: readonly Cell[],
): void {
  const exceptions = cells.filter(
    ({ column, holding, actual }) =>
      columns.includes(column) && holding === "without" && actual !== 403,
  );
  if (exceptions.length > 0) {
    const names = exceptions.map(({ method, column }) => `${method.name} by ${column.name}`);
    throw new Error(`not 403 without the required permission: ${names.join(", ")}`);
  }
}

function renderRow(
  method: DescMethod,
  columns: readonly CallerColumn[],
  cells: readonly Cell[],
): string[] {
  const { permission, callers } = accessOf(method);
  const required = callers.length > 0 ? "type of key" : "any key";
  const findOutcome = (column: CallerColumn) =>
    cells.find(
      (cell) => cell.method === method && cell.column === column && cell.holding === "with",
    )?.actual;
  return [
    `${nameOf(method)}${method.methodKind === "unary" ? "" : " (stream)"}`,
    permission === "" ? required : `\`${permission}\``,
    ...columns.map((column) => renderOutcome(findOutcome(column))),
  ];
}

/** Methods of other packages are named with their service. */
function nameOf({ name, parent }: DescMethod): string {
  return parent.file.proto.package === "latchkey.v1" ? name : `${parent.typeName}/${name}`;
}

function renderOutcome(outcome: Outcome | string | undefined): string {
  return symbols[String(outcome)] ?? String(outcome);
}

function renderTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, headings.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
