import type { SampleCall } from "../../../src/contract/samples/call.js";
import { capitalize, splitCamelCase } from "../../common/words.js";

/** The operations of the OpenAPI document, as the reference shows them. */

export interface Service {
  /** The anchor. */
  readonly id: string;
  readonly title: string;
  /** Markdown. */
  readonly description: string;
  readonly operations: readonly Operation[];
}

export interface Operation {
  /** The anchor. */
  readonly id: string;
  readonly title: string;
  /** In upper case. */
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  /** Markdown. */
  readonly description: string;
  /** Who may call it, in Markdown. */
  readonly access: string;
  /** The header of the caller's key. Absent if the operation needs none. */
  readonly keyHeader?: string | undefined;
  /** The header of the key of a client whose request the caller asks about. */
  readonly clientKeyHeader?: string | undefined;
  readonly parameters: readonly Parameter[];
  readonly body?: Body | undefined;
  readonly response: SuccessResponse;
  readonly errors: readonly OperationError[];
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  /** Markdown. */
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Body {
  readonly isForm: boolean;
  readonly required: boolean;
  readonly schema: Schema;
  /** The shortest one first. */
  readonly examples: readonly { readonly name: string; readonly value: unknown }[];
}

interface SuccessResponse {
  readonly status: string;
  readonly description: string;
  /** Absent if the response has no body. */
  readonly schema?: Schema | undefined;
  readonly example?: unknown;
}

export interface OperationError {
  readonly status: string;
  readonly code: string;
  readonly title: string;
  /** The body. */
  readonly example: object;
}

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  /** The values of a response, which may gain others. */
  readonly "x-extensible-enum"?: readonly string[];
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
}

/** The parts of an OpenAPI document that are used here. */
export interface OpenApiDocument {
  readonly info: { readonly title: string; readonly summary: string; readonly description: string };
  readonly security: readonly SecurityRequirement[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly securitySchemes: Readonly<Record<string, { readonly name: string }>>;
  };
}

type SecurityRequirement = Readonly<Record<string, unknown>>;

interface Media {
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface RequestBodyObject {
  readonly required: boolean;
  readonly content: Readonly<Record<string, Media>>;
}

interface ResponseObject {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, Media>>;
}

interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  /** Ends with `x-access`. */
  readonly description: string;
  readonly "x-access": string;
  readonly security?: readonly SecurityRequirement[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: RequestBodyObject;
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

/** The address of the service in samples. The script of the pages replaces it. */
export const exampleOrigin = "http://localhost:8080";

/** Lists the operations by service, in the order of the document. */
export function listServices(document: OpenApiDocument): Service[] {
  const operations = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({
      tag: operation.tags[0],
      operation: createOperation(document, verb.toUpperCase(), path, operation),
    })),
  );
  return document.tags.map(({ name, description }) => ({
    id: name.toLowerCase(),
    title: name,
    description,
    operations: operations.filter(({ tag }) => tag === name).map(({ operation }) => operation),
  }));
}

function createOperation(
  document: OpenApiDocument,
  method: string,
  path: string,
  object: OperationObject,
): Operation {
  const { operationId, summary, "x-access": access, parameters = [], responses } = object;
  const description = object.description.slice(0, -access.length).trim();
  const [status = "", success] =
    Object.entries(responses).find(([status]) => status.startsWith("2")) ?? [];
  const media = success?.content?.["application/json"];
  return {
    id: toAnchor(operationId),
    title: toTitle(operationId),
    method,
    path,
    summary,
    description,
    access,
    parameters,
    ...keyHeaders(document, object),
    body: object.requestBody && createBody(object.requestBody),
    response: {
      status,
      description: success?.description ?? "",
      schema: media?.schema,
      example: media?.example,
    },
    errors: Object.entries(responses).flatMap(([status, response]) =>
      status >= "400" ? listErrors(document, status, response) : [],
    ),
  };
}

function keyHeaders(
  { security: defaultSecurity, components }: OpenApiDocument,
  { security = defaultSecurity }: OperationObject,
): Pick<Operation, "keyHeader" | "clientKeyHeader"> {
  const headerOf = ([requirement = {}]: readonly SecurityRequirement[]) =>
    components.securitySchemes[Object.keys(requirement)[0] ?? ""]?.name;
  const usual = headerOf(defaultSecurity);
  const keyHeader = headerOf(security);
  const isGateway = keyHeader !== undefined && keyHeader !== usual;
  return { keyHeader, clientKeyHeader: isGateway ? usual : undefined };
}

function createBody({ required, content }: RequestBodyObject): Body {
  const [[type, media] = []] = Object.entries(content);
  const { schema = {}, example, examples = {} }: Partial<Media> = media ?? {};
  return {
    isForm: type === "application/x-www-form-urlencoded",
    required,
    schema,
    examples:
      example === undefined
        ? Object.entries(examples).map(([name, { value }]) => ({ name, value }))
        : [{ name: "example", value: example }],
  };
}

function listErrors(
  { components }: OpenApiDocument,
  status: string,
  response: ResponseObject,
): OperationError[] {
  const { content = {} } = response.$ref
    ? (components.responses[response.$ref.split("/").at(-1) ?? ""] as ResponseObject)
    : response;
  return Object.values(content)
    .flatMap(({ example, examples = {} }) => [
      ...(example === undefined ? [] : [example]),
      ...Object.values(examples).map(({ value }) => value),
    ])
    .map((problem) => {
      const { code, title } = problem as Pick<OperationError, "code" | "title">;
      return { status, code, title, example: problem as object };
    });
}

/** `whoAmI` becomes `who-am-i`. */
function toAnchor(operationId: string): string {
  return splitCamelCase(operationId).replaceAll(" ", "-").toLowerCase();
}

/** `createApplication` becomes `Create application`. */
function toTitle(operationId: string): string {
  return capitalize(splitCamelCase(operationId))
    .replace("auth zen", "AuthZEN")
    .replace(/ post$/, " (POST)")
    .replace("openapi", "OpenAPI");
}

/** The values of a call. */
interface CallValues {
  /** By the names of the parameters. Empty texts are not sent. Commas separate the items of a list. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly clientKey?: string | undefined;
}

/** Creates a call without the key of the caller. */
export function createCall(
  { method, path, parameters, keyHeader, clientKeyHeader, body }: Operation,
  origin: string,
  values: CallValues,
): SampleCall {
  const valuesIn = (place: Parameter["in"]) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .flatMap(({ name, schema }) => {
        const text = values.parameters[name] ?? "";
        const items = schema.type === "array" ? text.split(",") : [text];
        return items
          .filter((item) => item.trim() !== "")
          .map((item): [string, string] => [name, item.trim()]);
      });
  const filledPath = valuesIn("path").reduce(
    (filled, [name, value]) => filled.replace(`{${name}}`, encodeURIComponent(value)),
    path,
  );
  const query = new URLSearchParams(valuesIn("query")).toString();
  return {
    method,
    origin,
    path: query === "" ? filledPath : `${filledPath}?${query}`,
    ...(keyHeader === undefined ? { key: null } : { keyHeader }),
    headers: Object.fromEntries([
      ...valuesIn("header"),
      ...(clientKeyHeader && values.clientKey ? [[clientKeyHeader, values.clientKey]] : []),
    ]),
    ...(body?.isForm
      ? { form: values.body as Record<string, string> | undefined }
      : { body: values.body }),
  };
}

/** Stands for the key of a client in samples. */
export const exampleClientKey = "CLIENT_KEY";

/** Creates a call with the examples of the document. */
export function createExampleCall(operation: Operation, origin: string): SampleCall {
  const required = operation.parameters.filter((parameter) => parameter.required);
  return createCall(operation, origin, {
    parameters: Object.fromEntries(required.map(({ name, example }) => [name, String(example)])),
    body: operation.body?.examples[0]?.value,
    clientKey: exampleClientKey,
  });
}
