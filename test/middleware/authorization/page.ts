import type { DescMethod } from "@bufbuild/protobuf";
import { accessOf } from "../../../src/contract/methods.js";
import { readBinding } from "../../../src/transport/rest/router.js";
import { callerColumns } from "./callers.js";
import type { Outcome } from "./expected-response.js";
import type { Cell } from "./matrix.js";

const marks: Readonly<Record<string, string>> = { done: "✓", own: "own", impossible: "–" };

/** The documentation page with the results. */
export function renderPage(
  methods: readonly DescMethod[],
  cells: readonly Cell[],
  open: readonly string[],
): string {
  const headings = ["Method", "Asks for", ...callerColumns.map(({ name }) => name)];
  return `# Authorization

Who may call what, as a run of \`test/authorization.test.ts\` found it: every method is called by every kind of caller, over REST and gRPC, with a good request that is aimed at an application or session of the first tenant. The test fails where the contract says otherwise, where a method is missing here, and where this page is not what it found. \`npm run docs:authorization\` writes it anew.

| Mark | |
|---|---|
| ✓ | it is done |
| own | it is answered, and nothing of the other tenant is in the answer |
| 401, 403, 404, 409 | it is refused with this status, over gRPC with \`UNAUTHENTICATED\`, \`PERMISSION_DENIED\`, \`NOT_FOUND\` or \`FAILED_PRECONDITION\` |
| – | there is no such caller: its kind cannot be given the permission |
| a / b | a for a caller that holds the permission of the method and no other of this service, b for one that holds all others |

${tableOf(
  ["Caller", "Who that is"],
  callerColumns.map(({ name, who }) => [name, who]),
)}

Keys that ended, and those of other tenants, are of a kind that the method would let in.

${tableOf(
  headings,
  methods.map((method) => rowOf(method, cells)),
)}

Done for everybody (200 OK, over gRPC \`OK\`), whatever is sent for a key: ${open.map((name) => `\`${name}\``).join(", ")}. Metrics that have a port of their own, or are off, are not there (404).
`;
}

function rowOf(method: DescMethod, cells: readonly Cell[]): string[] {
  const { permission, callers } = accessOf(method);
  const asked = callers.length > 0 ? "the kind of key" : "any key";
  return [
    `${method.name}${readBinding(method) ? "" : " (stream)"}`,
    permission === "" ? asked : `\`${permission}\``,
    ...callerColumns.map((column) =>
      markOf(
        cells
          .filter((cell) => cell.method === method && cell.column === column)
          .map(({ found }) => found),
      ),
    ),
  ];
}

function markOf(outcomes: readonly (Outcome | string)[]): string {
  return [...new Set(outcomes)].map((outcome) => marks[outcome] ?? String(outcome)).join(" / ");
}

function tableOf(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, headings.map(() => "---"), ...rows];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
