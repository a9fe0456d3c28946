import { openapi } from "../../../gen/openapi.js";
import { problemMediaType } from "../../../src/contract/problems.js";

/** An operation of the REST API. */
export interface Operation {
  readonly name: string;
  readonly url: string;
  readonly summary: string;
  readonly description: string;
  readonly operationId: string;
  /** The errors that it returns, with an example of their body. */
  readonly errors: ReadonlyMap<string, object>;
}

interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

interface ResponseObject {
  readonly description?: string;
  readonly $ref?: string;
  readonly content?: Readonly<Record<string, MediaTypeObject>>;
}

interface MediaTypeObject {
  readonly example?: object;
  readonly examples?: Readonly<Record<string, { readonly value: object }>>;
}

const paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>> = openapi.paths;
const sharedResponses: Readonly<Record<string, ResponseObject>> = openapi.components.responses;

/** Lists the operations of the OpenAPI document. */
export function listOperations(): Operation[] {
  return Object.entries(paths).flatMap(([path, byVerb]) =>
    Object.entries(byVerb).map(([verb, operation]) => ({
      name: `${verb.toUpperCase()} ${path}`,
      url: `/docs/api#/${operation.tags[0]}/${operation.operationId}`,
      summary: operation.summary,
      description: operation.description,
      operationId: operation.operationId,
      errors: new Map(Object.values(operation.responses).flatMap(errorsOf)),
    })),
  );
}

function errorsOf(response: ResponseObject): (readonly [code: string, example: object])[] {
  const { content } = sharedResponses[response.$ref?.split("/").at(-1) ?? ""] ?? response;
  const { example, examples = {} } = content?.[problemMediaType] ?? {};
  return example && "code" in example
    ? [[String(example.code), example]]
    : Object.entries(examples).map(([code, { value }]) => [code, value]);
}
