import { openapi } from "../../../gen/openapi.js";
import { createSamples, type SampleLanguage } from "../../../src/contract/samples/samples.js";
import { exampleOrigin, listServices, type OpenApiDocument } from "../api/operations.js";

const operations = listServices(openapi as OpenApiDocument).flatMap(({ operations }) => operations);

/** A comment such as `<!-- tabs: POST /sessions/authorize {"nonce": "lk_non_…"} -->`. */
const callComment = /^<!-- tabs: ([A-Z]+) (\S+)(?:\s+(\{.*\}))?\s+-->$/s;

interface Tab {
  readonly language: SampleLanguage;
  readonly code: string;
}

/**
 * The same call as the command below a comment, in the other languages. Capitals in the path stand
 * for ids. Returns nothing for other comments.
 */
export function createCallTabs(comment: string): Tab[] | undefined {
  if (!comment.startsWith("<!-- tabs:")) {
    return undefined;
  }
  const [, method, path = "", json] = callComment.exec(comment.trim()) ?? [];
  if (method === undefined) {
    throw new Error(`Expected <!-- tabs: METHOD /path {body} -->, but found ${comment}`);
  }
  const operation = operations.find(
    (candidate) => candidate.method === method && toPattern(candidate.path).test(path),
  );
  if (!operation) {
    throw new Error(`The API has no operation for ${comment}`);
  }
  const body: unknown = json && JSON.parse(json);
  const key = operation.keyHeader === undefined ? null : undefined;
  const samples = createSamples({ origin: exampleOrigin, method, path, key, body });
  return samples.filter(({ language }) => language !== "curl");
}

/** A pattern for the paths of an operation, with a query. */
function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[A-Z_]+")}(?:\\?|$)`);
}
