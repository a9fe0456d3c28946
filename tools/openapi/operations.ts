import type { DescMessage, DescMethod, JsonObject } from "@bufbuild/protobuf";
import {
  rateLimitHeader,
  rateLimitPolicyHeader,
  replayedHeader,
} from "../../src/contract/headers.js";
import type { FieldViolation } from "../../src/contract/problems.js";
import { createRefusalExample, describeAccess, getCallers } from "../contract/access.js";
import { getAuthErrors, getMethodErrors } from "../contract/catalogue.js";
import {
  type Contract,
  type HttpBinding,
  ownFormat,
  type RestFormat,
} from "../contract/contract.js";
import { createExamples, createValidate, createViolations } from "../contract/examples.js";
import { formatList, getComment, paragraphs, splitSummary } from "../contract/prose.js";
import type { HeaderFields } from "./headers.js";
import { idempotencyKeyParameter, referToHeaders } from "./headers.js";
import type { Occurrence, Problems } from "./problems.js";
import type { Json, Schemas } from "./schemas.js";

interface OperationsOptions {
  readonly contract: Contract;
  readonly schemas: Schemas;
  readonly problems: Problems;
  readonly headerFields: HeaderFields;
}

/** Describes methods as operations of their REST bindings. */
export function createOperations({ contract, schemas, problems, headerFields }: OperationsOptions) {
  const validate = createValidate(contract);
  const examples = createExamples(contract, validate);

  function describeParameters(
    { input }: DescMethod,
    http: HttpBinding,
    example: JsonObject,
  ): Json[] {
    const inBody = getBodyFields(input, http);
    const parameters = input.fields.filter(
      (field) =>
        http.pathFields.includes(field.name) ||
        !(inBody.includes(field) || contract.isUpdateMask(field)),
    );
    return parameters.map((field) => {
      const header = contract.header(field);
      if (header !== undefined) {
        return headerFields.parameter(field, header);
      }
      const isInPath = http.pathFields.includes(field.name);
      const required = isInPath || contract.isRequired(field);
      return {
        name: field.name,
        in: isInPath ? "path" : "query",
        required,
        description: getComment(field),
        ...(field.fieldKind === "list" && { style: "form", explode: true }),
        schema: schemas.parameter(field),
        // Optional parameters have their examples in the schema, so "try it" sends none of them.
        example: required ? example[field.name] : undefined,
      };
    });
  }

  /** The fields of the message that are not in the path or in headers. The body of an update may repeat the path. */
  function getBodyFields({ fields }: DescMessage, { hasBody, pathFields }: HttpBinding) {
    const isUpdate = fields.some(contract.isUpdateMask);
    return fields.filter(
      (field) =>
        hasBody &&
        (isUpdate || !pathFields.includes(field.name)) &&
        contract.header(field) === undefined &&
        !contract.isUpdateMask(field),
    );
  }

  /** A JSON array that is the body as it is. */
  function describeItems(items: DescMessage): Json {
    return {
      "application/json": {
        schema: { type: "array", items: schemas.response(items, ownFormat) },
        example: examples.items(items),
      },
    };
  }

  /** The request body. `undefined` if it has no fields. */
  function describeBody(method: DescMethod, http: HttpBinding): Json | undefined {
    const items = contract.rawItems(method, "input");
    if (items) {
      return { required: true, content: describeItems(items) };
    }
    const { input } = method;
    const format = contract.restFormat(method);
    const fields = getBodyFields(input, http);
    if (fields.length === 0) {
      return undefined;
    }
    const complete = examples.request(input);
    const path = Object.fromEntries(http.pathFields.map((name) => [name, complete[name] ?? null]));
    const selectBody = (example: JsonObject) =>
      fields.flatMap(({ name }) =>
        name in example && !http.pathFields.includes(name) ? [[name, example[name]]] : [],
      );
    const isPatch = http.verb === "patch";
    const minimal = selectBody(examples.minimalRequest(input)).slice(0, isPatch ? 1 : undefined);
    const media: Json = {
      schema: isPatch
        ? schemas.patch(input, { all: fields, inPath: http.pathFields })
        : schemas.request(input, { all: fields, inPath: http.pathFields }, format),
      examples: {
        ...(minimal.length > 0 && {
          minimal: {
            summary: isPatch ? "One field" : "As few fields as possible",
            value: Object.fromEntries(minimal),
          },
        }),
        complete: {
          summary: "As many fields as possible",
          value: Object.fromEntries(selectBody(complete)),
        },
      },
    };
    return {
      // An absent body counts as an empty one.
      required: !isPatch && validate(input, path).length > 0,
      content: Object.fromEntries(mediaTypes(format, isPatch).map((type) => [type, media])),
    };
  }

  function describeSuccess(method: DescMethod): Json {
    const { output } = method;
    const format = contract.restFormat(method);
    const status = contract.httpStatus(method);
    const headers = {
      ...referToHeaders([
        ...(contract.access(method).unauthenticated
          ? []
          : [rateLimitPolicyHeader, rateLimitHeader]),
        ...(contract.isReplayable(method) ? [replayedHeader] : []),
      ]),
      ...headerFields.responseHeaders(output),
    };
    if (status === 204) {
      return { 204: { description: "Success, without a body.", headers } };
    }
    const items = contract.rawItems(method, "output");
    if (items) {
      const description = getComment(items);
      return { [status ?? 200]: { description, headers, content: describeItems(items) } };
    }
    const omitted = contract.omittedFields(method);
    const without = formatList(
      omitted.map((path) => `\`${path}\``),
      "conjunction",
    );
    return {
      [status ?? 200]: {
        description: getComment(output) + (without && ` Without ${without}.`),
        headers,
        content: {
          "application/json": {
            schema: schemas.response(output, format),
            example: examples.response(method),
          },
        },
      },
    };
  }

  function listErrors(method: DescMethod, hasBody: boolean, example: JsonObject): Json {
    // Lenient methods refuse other media types as invalid requests. Raw bodies may be of any.
    const checksMediaType =
      hasBody &&
      contract.restFormat(method) !== "REST_FORMAT_LENIENT_JSON" &&
      !contract.rawItems(method, "input");
    const codes = [
      "invalid_request",
      ...getAuthErrors(contract, method),
      ...getMethodErrors(contract, method),
      ...(hasBody ? ["body_too_large"] : []),
      "url_too_long",
      ...(checksMediaType ? ["unsupported_media_type"] : []),
      "rate_limited",
      "headers_too_large",
      "internal",
      ...(hasBody ? ["overloaded"] : []),
      "store_unavailable",
      "deadline_exceeded",
    ];
    const invalid = createViolations(method.input, example, validate) ?? [unknownParameter];
    const violations = hasBody ? invalid : invalid.map(nameParameter);
    const { permission, callers } = contract.access(method);
    const missing = permission && callers.length === 0 ? [permission] : undefined;
    const own: Record<string, Occurrence> = {
      invalid_request: { detail: formatDetail(violations), violations },
      permission_denied: {
        detail: createRefusalExample(contract, method),
        ...(missing && { facts: { missing_permissions: missing } }),
      },
    };
    return problems.responses(codes, own);
  }

  /** The comment of a method, with the first paragraph of its own for the verb, if it has one. */
  function getText(method: DescMethod, { verb }: HttpBinding): string {
    const [first = "", ...others] = getComment(method).split("\n\n");
    return [contract.restText(method, verb) ?? first, ...others].join("\n\n");
  }

  return (method: DescMethod, http: HttpBinding, tag: string): Json => {
    const [summary, rest] = splitSummary(getText(method, http));
    const example = contract.rawItems(method, "input") ? {} : examples.request(method.input);
    const parameters = [
      ...describeParameters(method, http, example),
      ...(contract.isReplayable(method) ? [idempotencyKeyParameter] : []),
    ];
    const requestBody = describeBody(method, http);
    const [main] = contract.http(method);
    return {
      operationId: method.localName + (http.verb === main?.verb ? "" : capitalize(http.verb)),
      tags: [tag],
      summary,
      // Ends with who may call it, because few tools show extensions.
      description: paragraphs(rest, describeAccess(contract, method)),
      "x-access": describeAccess(contract, method),
      security: describeSecurity(contract, method),
      "x-required-permission": contract.access(method).permission,
      "x-callers": getCallers(contract, method),
      parameters: parameters.length > 0 ? parameters : undefined,
      requestBody,
      responses: {
        ...describeSuccess(method),
        ...listErrors(method, requestBody !== undefined, example),
      },
    };
  };
}

/** How a caller authenticates, if not with the key header. Pages could not mask a key in other schemes. */
function describeSecurity(contract: Contract, method: DescMethod): Json[] | undefined {
  const { keyHeader, unauthenticated } = contract.access(method);
  if (unauthenticated) {
    return [];
  }
  return keyHeader === undefined ? undefined : [{ gatewayKey: [] }];
}

function mediaTypes(format: RestFormat, isPatch: boolean): string[] {
  return format === "REST_FORMAT_FORM"
    ? ["application/x-www-form-urlencoded"]
    : ["application/json", ...(isPatch ? ["application/merge-patch+json"] : [])];
}

function capitalize(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** The example for a request without fields. */
const unknownParameter: FieldViolation = {
  field: "page",
  message: "is not a parameter of this path",
  code: "unknown_parameter",
};

/** Names a parameter that is sent once without the index of its list. */
function nameParameter(violation: FieldViolation): FieldViolation {
  return { ...violation, field: violation.field.replace(/\[0\]$/, "") };
}

function formatDetail(violations: readonly FieldViolation[]): string {
  return violations.map(({ field, message }) => `${field}: ${message}`).join("; ");
}
