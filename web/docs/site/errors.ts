import { STATUS_CODES } from "node:http";
import {
  errorDomain,
  type ProblemCode,
  problemCatalogue,
  problemUri,
} from "../../../src/contract/problems.js";
import type { Operation } from "../api/operations.js";
import type { NavigationLink } from "./navigation.js";

export const errorsFile = "docs/reference/errors.md";

/** The part of the file that the pages of the errors show instead. */
const remediesHeading = "## What to do";
/** Search does not find errors by the operations below this heading. */
export const operationsHeading = "Returned by";

/** The texts about an error in the file, as Markdown. */
interface ErrorText {
  readonly grpc: string;
  readonly cause: string;
  readonly remedy: string;
}

/** In the order of the statuses. */
const codes = Object.keys(problemCatalogue) as ProblemCode[];

/** The file without the texts that have their own page. */
export function withoutRemedies(file: string): string {
  return file.split(remediesHeading, 1)[0] ?? "";
}

/** The URL of the page of an error, if a link to a heading of the file means one. */
export function errorUrl(hash: string): string | undefined {
  return codes.includes(hash.slice(1) as ProblemCode) ? problemUri(hash.slice(1)) : undefined;
}

export const errorLinks: readonly NavigationLink[] = codes.map((code) => ({
  title: code,
  url: problemUri(code),
}));

interface ErrorPage extends NavigationLink {
  readonly markdown: string;
  /** Additional search terms. */
  readonly names: readonly string[];
}

/** Writes a page for each error of the catalogue. */
export function createErrorPages(file: string, operations: readonly Operation[]): ErrorPage[] {
  return codes.map((code) => {
    const { title, status } = problemCatalogue[code];
    const { grpc, cause, remedy } = findText(file, code);
    const returning = operations.filter(({ errors }) =>
      errors.some((error) => error.code === code),
    );
    const example = returning[0]?.errors.find((error) => error.code === code)?.example;
    const parts = [
      `# ${title}`,
      cause,
      renderFacts({ Code: `\`${code}\``, "HTTP status": String(status), "gRPC status": grpc }),
      remediesHeading,
      remedy,
      ...(returning.length > 0
        ? [`## ${operationsHeading}`, describeOperations(returning, operations)]
        : []),
      ...(example ? ["## Example", "Over REST:", renderJson(example)] : []),
      "## Over gRPC and Connect",
      "The error has this `google.rpc.ErrorInfo` among its details:",
      renderJson({
        reason: code.toUpperCase(),
        domain: errorDomain,
        metadata: { request_id: "…" },
      }),
    ];
    const names = [String(status), STATUS_CODES[status] ?? "", title];
    return { title: code, url: problemUri(code), markdown: parts.join("\n\n"), names };
  });
}

function findText(file: string, code: string): ErrorText {
  const row = new RegExp(
    `^\\| \\[\`${code}\`\\]\\(#${code}\\) \\| \\d+ \\| ?(.*?) \\| (.*) \\|$`,
    "m",
  );
  const section = new RegExp(`^### ${code}\n(.*?)(?=^###|(?![^]))`, "ms");
  const [, grpc = "", cause] = row.exec(file) ?? [];
  const [, remedy] = section.exec(file) ?? [];
  if (cause === undefined || remedy === undefined) {
    throw new Error(`${errorsFile} needs a row and a section for the error ${code}.`);
  }
  return { grpc, cause, remedy };
}

function renderFacts(facts: Readonly<Record<string, string>>): string {
  const rows = Object.entries(facts).filter(([, value]) => value !== "");
  return ["| | |", "|---|---|", ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join(
    "\n",
  );
}

function renderJson(value: object): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

function describeOperations(returning: readonly Operation[], all: readonly Operation[]): string {
  const others = all.filter((operation) => !returning.includes(operation));
  if (others.length === 0) {
    return "Every operation.";
  }
  return others.length < returning.length
    ? `Every operation except these:\n\n${listLinks(others)}`
    : listLinks(returning);
}

function listLinks(operations: readonly Operation[]): string {
  return operations
    .map(
      ({ id, method, path, summary }) => `- [\`${method} ${path}\`](/docs/api#${id}): ${summary}`,
    )
    .join("\n");
}
