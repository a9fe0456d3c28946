import { spawnSync } from "node:child_process";
import {
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  hasOption,
  isFieldSet,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, it } from "@jest/globals";
import { http } from "../../gen/google/api/annotations_pb.js";
import {
  access,
  CallerType,
  errors,
  http_header,
  leaves_out,
  RestFormat,
  replayable,
  rest_format,
  WithoutMask,
} from "../../gen/latchkey/v1/options_pb.js";
import { openapi } from "../../gen/openapi.js";
import { validationRules } from "../../src/contract/fields.js";
import { services, statusOf } from "../../src/contract/methods.js";
import type { ProblemCode } from "../../src/contract/problems.js";
import { updateMaskOf, withoutMask } from "../../src/contract/update-mask.js";
import { Problem } from "../../src/errors.js";
import { createFeedback, readLeakedTokens } from "../../src/services/keys/leak-report.js";
import { createEncoder } from "../../src/transport/rest/encode.js";
import { isRawBody } from "../../src/transport/rpc/methods.js";
import { createAuthZenMetadata } from "../../src/transport/system/endpoints.js";
import { matchesPattern } from "../../src/validation/patterns.js";
import { findFieldViolations } from "../../src/validation/violations.js";
import { isFullSuite } from "../support/jest/suite.js";

interface Media {
  readonly example?: Record<string, JsonValue>;
  readonly examples?: Readonly<Record<string, { readonly value: Record<string, JsonValue> }>>;
}

interface ResponseObject {
  readonly description: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface Schema {
  readonly examples?: readonly JsonValue[];
  readonly items?: Schema;
}

interface BodySchema {
  readonly properties: Readonly<Record<string, { readonly type?: string | readonly string[] }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly example?: JsonValue;
  readonly schema: Schema;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly "x-access": string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, Media>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
  readonly "x-required-permission"?: string;
  readonly "x-callers"?: readonly string[];
}

/** The document with every response reference resolved. */
const paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> = JSON.parse(
  JSON.stringify(openapi.paths),
  (_, value) => {
    const name = /^#\/components\/responses\/(.*)$/.exec(value?.$ref)?.[1];
    return name ? (openapi.components.responses as Record<string, unknown>)[name] : value;
  },
);
const operations = Object.values(paths).flatMap((verbs) => Object.values(verbs));

const methods = services
  .flatMap((service) => service.methods)
  .filter((method) => hasOption(method, http))
  .map((method) => {
    const { pattern } = getOption(method, http);
    const operation = paths[pattern.value ?? ""]?.[pattern.case ?? ""] as Operation;
    return { name: method.name, method: method as DescMethod, operation };
  });

const validator = createValidator({ registry: validationRules, regexMatch: matchesPattern });

const operationPath = ["paths", "/applications/{id}", "get"];
const forbiddenBody = [...operationPath, "responses", "403", "content", "application/problem+json"];
const successBody = ["responses", "200", "content", "application/json"];

describe("the OpenAPI document", () => {
  it("passes a strict linter", () => {
    expect(lint(openapi)).toEqual([]);
  });

  // The full suite checks that the linter still reports errors.
  if (isFullSuite) {
    it("fails the linter if it is invalid", () => {
      const violations: [rule: string, path: string[], value: unknown][] = [
        ["struct", ["servers"], "/"],
        ["info-license", ["info", "license"], undefined],
        ["no-unresolved-refs", ["components", "schemas", "Pagination"], undefined],
        ["security-defined", ["components", "securitySchemes"], {}],
        [
          "operation-4xx-response",
          ["paths", "/healthz", "get", "responses"],
          { 200: { description: "It runs." } },
        ],
        ["operation-tag-defined", ["paths", "/healthz", "get", "tags"], ["Health"]],
        ["no-invalid-parameter-examples", [...operationPath, "parameters", "0", "example"], 7],
        [
          "no-invalid-media-type-examples",
          [...operationPath, ...successBody, "example", "id"],
          "7",
        ],
        [
          "no-invalid-media-type-examples",
          [...forbiddenBody, "examples", "permission_denied", "value", "status"],
          "403",
        ],
        ["no-invalid-schema-examples", ["components", "schemas", "Problem", "examples"], [{}]],
        ["response-contains-header", [...operationPath, "responses", "200", "headers"], {}],
      ];
      const problems = lint(
        violations.reduce((document, [, path, value]) => setAt(document, path, value), openapi),
      );
      const found = problems.map(({ rule }) => rule);
      for (const [rule] of violations) {
        const index = found.indexOf(rule);
        expect({ rule, isFound: index >= 0 }).toEqual({ rule, isFound: true });
        found.splice(index, 1);
      }
    });
  }

  it("describes only the methods with a path, the probes, itself and the AuthZEN metadata", () => {
    const names = methods.flatMap(({ method }) => [
      method.localName,
      ...getOption(method, http).additionalBindings.map(
        ({ pattern: { case: verb = "" } }) =>
          `${method.localName}${verb.charAt(0).toUpperCase()}${verb.slice(1)}`,
      ),
    ]);
    expect(operations.map(({ operationId }) => operationId).sort()).toEqual(
      [
        ...names,
        "getService",
        "getHealth",
        "getReadiness",
        "getOpenapi",
        "getAuthZenMetadata",
      ].sort(),
    );
  });

  it("links to the streams, which have no path, in its description", () => {
    const streams = services.flatMap(({ methods }) =>
      methods.filter(({ methodKind }) => methodKind !== "unary"),
    );
    expect(streams).toHaveLength(3);
    for (const { name } of streams) {
      expect(openapi.info.description).toContain(
        `[\`${name}\`](/docs/proto#${name.toLowerCase()})`,
      );
    }
  });

  it("names the header of the key in one place", () => {
    expect(openapi.components.securitySchemes.apiKey).toMatchObject({
      type: "apiKey",
      in: "header",
      name: "SVC-API-KEY",
    });
    expect(JSON.stringify(openapi).match(/svc-api-key/gi)).toHaveLength(1);
  });

  it("requires a key everywhere except for KeyService and the probes", () => {
    const unauthenticated = operations.filter(({ security }) => security?.length === 0);
    expect(unauthenticated.map(({ operationId }) => operationId)).toEqual([
      "revokeKey",
      "reportLeakedKeys",
      "getService",
      "getHealth",
      "getReadiness",
      "getOpenapi",
      "getAuthZenMetadata",
    ]);
    expect(openapi.security).toEqual([{ apiKey: [] }]);
  });

  it("has the AuthZEN metadata of the service as an example", () => {
    const { get } = openapi.paths["/.well-known/authzen-configuration"];
    const { example } = get.responses[200].content["application/json"];
    expect(example).toEqual(JSON.parse(createAuthZenMetadata(example.policy_decision_point)));
  });

  it("includes a key only in operations that create, check or revoke one", () => {
    const findWithKey = (part: (operation: Operation) => unknown) =>
      methods
        .filter(({ operation }) => /lk_(prv|pub|mgt|ses)_/.test(JSON.stringify(part(operation))))
        .map(({ name }) => name);
    expect(findWithKey(({ responses }) => responses)).toEqual([
      "CreateApplication",
      "RegenerateApplicationKey",
      "CreateSession",
    ]);
    expect(findWithKey(({ responses, ...request }) => request)).toEqual([
      "CheckAccess",
      "BatchCheckAccess",
      "RevokeKey",
      "ReportLeakedKeys",
      "Introspect",
    ]);
  });
});

describe("a client that is generated from the OpenAPI document", () => {
  it("can name the types of responses after the operations", () => {
    const names = operations.map(({ operationId }) => `${operationId}Response`.toLowerCase());
    const schemas = Object.keys(openapi.components.schemas).map((name) => name.toLowerCase());
    expect(names.filter((name) => schemas.includes(name))).toEqual([]);
    expect(schemas).toContain("createsessionresult");
  });

  it("accepts new values in responses, and sends only known ones", () => {
    const { schemas, responses, headers } = openapi.components;
    const used = new Set<string>();
    const visit = (part: unknown): void => {
      for (const [, name = ""] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
        if (!used.has(name)) {
          used.add(name);
          visit(schemas[name as keyof typeof schemas]);
        }
      }
    };
    const answers = [responses, headers, operations.map(({ responses }) => responses)];
    visit(answers);
    const text = JSON.stringify([
      answers,
      [...used].map((name) => schemas[name as keyof typeof schemas]),
    ]);
    expect(text).not.toContain('"enum"');
    expect(text).toContain('"x-extensible-enum"');
    expect(openapi.components.schemas.CreateApplicationRequest.properties.type.enum).toEqual([
      "private",
      "public",
      "management",
    ]);
  });
});

it("every operation of the OpenAPI document lists 414 and 431", () => {
  for (const [path, verbs] of Object.entries(paths)) {
    for (const [verb, { responses }] of Object.entries(verbs)) {
      expect([path, verb, Object.keys(responses)]).toEqual([
        path,
        verb,
        expect.arrayContaining(["414", "431"]),
      ]);
    }
  }
});

it("an example of a page in the OpenAPI document has as many items as its size", () => {
  const pages = methods.flatMap(({ operation }) => {
    const { example } = operation.responses[200]?.content?.["application/json"] ?? {};
    return example && "pagination" in example ? [example] : [];
  });
  expect(pages).not.toHaveLength(0);
  for (const { pagination, data } of pages) {
    const { page_size, next } = pagination as { page_size?: number; next?: string };
    expect({ size: (data as []).length, next }).toEqual({
      size: page_size,
      next: expect.any(String),
    });
  }
});

it("a request body accepts null only for the fields that an update can clear", () => {
  const nullable = methods.flatMap(({ method }) => {
    const schema = (openapi.components.schemas as Record<string, BodySchema>)[method.input.name];
    return Object.entries(schema?.properties ?? {})
      .filter(([, { type }]) => type?.includes("null"))
      .map(([field]) => `${method.name} ${field}`);
  });
  expect(nullable).toEqual(
    methods.flatMap(({ method }) =>
      (updateMaskOf(method.input)?.updatable ?? [])
        .filter((field) => withoutMask(field) !== WithoutMask.REQUIRED)
        .map((field) => `${method.name} ${field.name}`),
    ),
  );
  expect(nullable).toContain("UpdateApplication expires_at");
});

describe("a duration in the OpenAPI document", () => {
  const { grace_period } = openapi.components.schemas.RegenerateApplicationKeyRequest.properties;

  it("is a string with an example and a description of its limits", () => {
    expect(grace_period).toMatchObject({ type: "string", examples: ["3600s"] });
    expect(grace_period.description).toContain("Must be at most 2592000s.");
    expect(grace_period.description).toContain("Must be at least 1s, or 0s to revoke the key");
  });

  it.each(["0s", "1.5s", "2592000s", "0.000000001s"])("matches %j", (text) => {
    expect(text).toMatch(new RegExp(grace_period.pattern));
  });

  it.each(["", "1", "-1s", "1.s", ".5s", "1m", "PT1H", "1s "])("does not match %j", (text) => {
    expect(text).not.toMatch(new RegExp(grace_period.pattern));
  });
});

describe("an operation of an update", () => {
  const { put, patch } = openapi.paths["/applications/{id}"];

  it("is described for clients of REST", () => {
    expect(put.summary).toBe("Replaces the name, the permissions and the rules of an application");
    expect(patch.summary).toMatch(/^Changes the fields of an application that the body contains/);
    for (const { summary, description } of [put, patch]) {
      expect(summary + description).not.toMatch(/update_mask|update mask|PUT|PATCH/);
      expect(description).toContain("the caller must hold all permissions of this service");
    }
  });

  it("describes If-Match as the header is sent", () => {
    const [header] = put.parameters.filter(({ name }) => name === "If-Match");
    expect(header?.description).toMatch(/, including the double quotes\.$/);
    expect(header?.description).not.toMatch(/without|metadata|no effect/);
  });
});

describe.each(methods)("the operation of $name", ({ method, operation }) => {
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));

  it("states who may call it", () => {
    const { permission, callers, unauthenticated } = getOption(method, access);
    expect(operation["x-required-permission"] ?? "").toBe(permission);
    expect(operation.description).toContain(permission && `\`${permission}\``);
    expect(operation["x-callers"]?.length === 0).toBe(unauthenticated);
    if (callers.length > 0) {
      expect(operation["x-callers"]).toEqual(callers.map((type) => CallerType[type].toLowerCase()));
    }
  });

  it("has example requests that the service accepts", () => {
    const parameters = (operation.parameters ?? []).filter(({ required }) => required);
    const inUrl = Object.fromEntries(
      parameters.map(({ name, example }) => [name, example ?? null]),
    );
    const bodies = operation.requestBody ? getExamples(bodyOf(operation)) : [{}];
    if (isRawBody(method.input)) {
      expect(readLeakedTokens(Buffer.from(JSON.stringify(bodies)))).toHaveLength(1);
      return;
    }
    for (const body of bodies) {
      const message = fromJson(method.input, { ...body, ...inUrl });
      expect(validator.validate(method.input, message).error).toBeUndefined();
    }
  });

  it("needs every field of its minimal example request", () => {
    const { value = {} } = bodyOf(operation)?.examples?.minimal ?? {};
    const path = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
    const inPath = Object.fromEntries(path.map(({ name, example }) => [name, example ?? null]));
    for (const name of Object.keys(value)) {
      const { [name]: _, ...others } = value;
      const message = fromJson(method.input, { ...others, ...inPath });
      expect({ name, violations: findFieldViolations(method.input, message) }).not.toEqual({
        name,
        violations: [],
      });
    }
  });

  it("requires a body only if the service does", () => {
    const { requestBody, parameters = [] } = operation;
    const path = parameters.filter((parameter) => parameter.in === "path");
    const minimal = Object.fromEntries(path.map(({ name, example }) => [name, example ?? null]));
    const result = validator.validate(method.input, fromJson(method.input, minimal));
    const needsBody = isRawBody(method.input) || result.error !== undefined;
    expect(requestBody?.required ?? false).toBe(requestBody !== undefined && needsBody);
  });

  it("has an example response that satisfies the rules of its message", () => {
    const [status, response] = success ?? [];
    expect(Number(status)).toBe(statusOf(method));
    if (status === "204") {
      expect(response?.content).toBeUndefined();
      return;
    }
    const example = response?.content?.["application/json"]?.example ?? null;
    if (isRawBody(method.output)) {
      const [feedback] = createFeedback([{ token: "a", type: "b" }], new Set());
      expect(example).toEqual([
        Object.fromEntries(Object.keys(feedback ?? {}).map((name) => [name, expect.any(String)])),
      ]);
      return;
    }
    const message = fromJson(method.output, example);
    expect(validator.validate(method.output, message).error).toBeUndefined();
    const omitsAbsent = getOption(method, rest_format) !== RestFormat.UNSPECIFIED;
    // Members that the handler does not set are absent, unlike in a complete message.
    const shown = omitsAbsent ? pickSet(method.output, message) : message;
    const encode = createEncoder(method.output, { omitsAbsent });
    expect(JSON.parse(encode(shown).toString())).toEqual(example);
    for (const path of getOption(method, leaves_out)) {
      expect(example).not.toHaveProperty(path.replace(/^data\./, "data.0."));
    }
  });

  it("puts header fields into headers only", () => {
    const getHeaderFields = ({ fields }: DescMessage) =>
      fields.filter((field) => hasOption(field, http_header));
    for (const field of getHeaderFields(method.input)) {
      const name = getOption(field, http_header);
      const parameters = operation.parameters?.filter((parameter) =>
        [name, field.name].includes(parameter.name),
      );
      expect(parameters).toMatchObject([{ name, in: "header", required: false }]);
      for (const body of operation.requestBody ? getExamples(bodyOf(operation)) : []) {
        expect(body).not.toHaveProperty(field.name);
      }
    }
    for (const field of getHeaderFields(method.output)) {
      expect(success?.[1].headers).toHaveProperty(getOption(field, http_header));
    }
  });

  it("accepts an Idempotency-Key only for replayable methods", () => {
    const isReplayable = getOption(method, replayable);
    const parameter = operation.parameters?.find(({ name }) => name === "Idempotency-Key");
    expect(parameter).toEqual(
      isReplayable ? expect.objectContaining({ in: "header", required: false }) : undefined,
    );
    expect("Idempotent-Replayed" in (success?.[1].headers ?? {})).toBe(isReplayable);
  });

  it("lists its errors", () => {
    const statuses = Object.keys(operation.responses).filter((status) => status >= "400");
    const own = getOption(method, errors).map(
      (code) => new Problem(code as ProblemCode, "").status,
    );
    const isLenient = getOption(method, rest_format) === RestFormat.LENIENT_JSON;
    const checksMediaType = !isLenient && !isRawBody(method.input);
    const bodyErrors = operation.requestBody ? [413, ...(checksMediaType ? [415] : [])] : [];
    const replayErrors = getOption(method, replayable) ? [409, 422] : [];
    const authErrors = getOption(method, access).unauthenticated ? [] : [401, 403];
    const shared = [400, ...authErrors, 414, 429, 431, 500, 503, 504];
    const all = new Set([...shared, ...own, ...bodyErrors, ...replayErrors]);
    expect(statuses.map(Number)).toEqual([...all].sort((a, b) => a - b));
  });
});

describe.each(operations)("the description of $operationId", (operation) => {
  it("describes the operation and its access", () => {
    expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
    const { description, "x-access": access } = operation;
    expect(access).toMatch(
      operation.security?.length === 0
        ? /^Needs no key\.$/
        : /^(Requires (the key of|the permission) .*|Any valid key is accepted)\.$/,
    );
    expect(description.slice(-access.length)).toBe(access);
  });

  it("has an example of every parameter and of the body", () => {
    for (const { name, required, description, example, schema } of operation.parameters ?? []) {
      expect({ name, description }).toEqual({ name, description: expect.stringMatching(/\.$/) });
      const examples = [example ?? [], schema.examples ?? schema.items?.examples ?? []].flat();
      expect({ name, examples }).not.toEqual({ name, examples: [] });
      // API explorers prefill parameters that have their own example.
      expect({ name, hasOwn: example !== undefined }).toEqual({ name, hasOwn: required });
    }
    if (operation.requestBody) {
      expect(getExamples(bodyOf(operation)).length).toBeGreaterThanOrEqual(1);
    }
  });

  it("has no timestamp in its example request, which would become outdated", () => {
    const { parameters = [], requestBody } = operation;
    const examples = [parameters.map(({ example }) => example), requestBody?.content ?? {}];
    expect(JSON.stringify(examples)).not.toMatch(/\d{4}-\d\d-\d\dT/);
  });

  it("describes every response with an example", () => {
    const statuses = Object.keys(operation.responses);
    expect(statuses.filter((status) => status < "300")).toHaveLength(1);
    expect(statuses.filter((status) => status >= "400")).not.toHaveLength(0);
    for (const [status, { description, content }] of Object.entries(operation.responses)) {
      expect(description).toMatch(/\.$/);
      if (status !== "204") {
        const examples = Object.values(content ?? {}).map((media) => getExamples(media));
        expect({ status, media: examples.length }).toEqual({ status, media: 1 });
      }
    }
  });
});

describe.each(operations)("the responses of $operationId", ({ responses, security }) => {
  it("describe the rate limit", () => {
    const needsKey = security?.length !== 0;
    for (const [status, { headers }] of Object.entries(responses)) {
      const isDescribed = status === "429" || (needsKey && status.startsWith("2"));
      expect("RateLimit" in headers).toBe(isDescribed);
      expect("RateLimit-Policy" in headers).toBe(isDescribed);
    }
  });

  it("carry the request id", () => {
    for (const { headers } of Object.values(responses)) {
      expect(headers).toHaveProperty("X-Request-Id");
    }
  });

  it("match the error catalogue", () => {
    for (const [status, { content, headers }] of Object.entries(responses)) {
      if (status < "400") {
        continue;
      }
      expect(Object.keys(content ?? {})).toEqual(["application/problem+json"]);
      const examples = getExamples(content?.["application/problem+json"]);
      for (const example of examples) {
        const problem = new Problem(example.code as ProblemCode, "");
        expect(problem.status).toBe(Number(status));
        expect(example).toMatchObject({
          type: `/docs/errors/${problem.problemCode}`,
          title: problem.title,
          status: problem.status,
        });
      }
      expect("WWW-Authenticate" in headers).toBe(status === "401");
      const isRetryable = examples.some(({ code }) => code === "idempotency_conflict");
      expect("Retry-After" in headers).toBe(/^(429|50[34])$/.test(status) || isRetryable);
      expect("X-RateLimit-Reset" in headers).toBe(status === "429");
    }
  });
});

/** The body of a request, whatever its type. */
function bodyOf({ requestBody }: Operation): Media | undefined {
  return Object.values(requestBody?.content ?? {})[0];
}

/** The fields of a message that are set. */
function pickSet(schema: DescMessage, message: Message): object {
  const isSet = (field: DescField) => isFieldSet(message, field);
  return Object.fromEntries(
    schema.fields
      .filter(isSet)
      .map(({ localName }) => [localName, (message as unknown as Fields)[localName]]),
  );
}

type Fields = Record<string, unknown>;

/** Returns all examples of a body, at least one. */
function getExamples({ example, examples = {} }: Media = {}): Record<string, JsonValue>[] {
  const all = [example ?? [], ...Object.values(examples).map(({ value }) => value)].flat();
  expect(all).not.toHaveLength(0);
  return all;
}

/** Runs the linter in a separate process, because jest does not load ES modules. */
function lint(document: unknown): { rule: string; message: string }[] {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", "tools/openapi/lint.ts"],
    { input: JSON.stringify(document), encoding: "utf8" },
  );
  if (stdout === "") {
    throw new Error(stderr);
  }
  return JSON.parse(stdout);
}

/** Copies an object with another value at a path. */
function setAt<T extends object>(target: T, [name = "", ...rest]: string[], value: unknown): T {
  const child = (target as Record<string, object>)[name] ?? {};
  const changed = rest.length > 0 ? setAt(child, rest, value) : value;
  return Array.isArray(target)
    ? (target.with(Number(name), changed) as T & unknown[])
    : { ...target, [name]: changed };
}
