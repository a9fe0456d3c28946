import {
  createRegistry,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescMethod,
  type DescService,
  type JsonObject,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { memoize } from "../../src/lib/cache.js";
import { parseTemplate } from "../../src/transport/rest/router.js";

/** The package of the contract. Other packages are dependencies. */
export const contractPackage = "latchkey.v1";

/** Reads the options of the protos. */
export interface Contract {
  readonly registry: Registry;
  /** Every type of caller, in lower case. */
  readonly callerTypes: readonly string[];

  /** The REST bindings of a method, the main one first. */
  http(method: DescMethod): readonly HttpBinding[];
  access(method: DescMethod): Access;
  /** The status of a successful response, if the method sets one. */
  httpStatus(method: DescMethod): number | undefined;
  errors(method: DescMethod): readonly string[];
  omittedFields(method: DescMethod): readonly string[];
  /** Fields of the example response. */
  responseExample(method: DescMethod): JsonObject;
  isReplayable(method: DescMethod): boolean;
  /** The text of the method's REST operation with a verb, if it has its own. */
  restText(method: DescMethod, verb: HttpBinding["verb"]): string | undefined;
  /** The message that describes each item of a raw body, if the message is one. */
  rawItems(method: DescMethod, side: "input" | "output"): DescMessage | undefined;
  restFormat(method: DescMethod): RestFormat;
  permissions(service: DescService): readonly Permission[];

  /** The header that carries a field, if any. */
  header(field: DescField): string | undefined;
  /** The header that carries a response field as plain text, if any. */
  textHeader(field: DescField): string | undefined;
  /** Whether only the service sets the field. */
  isOutputOnly(field: DescField): boolean;
  isUpdateMask(field: DescField): boolean;
  messageRules(message: DescMessage): readonly Rule[];
  /** Fields of the example of the message. */
  example(message: DescMessage): JsonObject;
  fieldRules(field: DescField): FieldRules;
  isRequired(field: DescField): boolean;
  /** The CEL rules of our own extensions, without those that list the allowed values. */
  predefinedRules(rules: object): readonly Rule[];
  /** The CEL rule of our own extensions that lists the allowed values, if there is one. */
  listRule(rules: StringRules): Rule | undefined;
  /** The values that a rule allows, if it lists them. */
  choices(rules: StringRules): readonly string[] | undefined;
}

/** The format of methods that follow no standard. */
export const ownFormat = "REST_FORMAT_UNSPECIFIED";

export type RestFormat = typeof ownFormat | "REST_FORMAT_LENIENT_JSON" | "REST_FORMAT_FORM";

export interface HttpBinding {
  readonly verb: "get" | "put" | "post" | "patch" | "delete";
  readonly path: string;
  /** The request fields in the path. */
  readonly pathFields: readonly string[];
  readonly hasBody: boolean;
}

interface Access {
  readonly permission: string | undefined;
  /** Empty allows every type. */
  readonly callers: readonly string[];
  /** The header that carries the key, if it is not the configured one. */
  readonly keyHeader: string | undefined;
  /** Whether `Authorization` may carry the key. */
  readonly acceptsAuthorization: boolean;
  /** Whether no key is required. */
  readonly unauthenticated: boolean;
  /** Whether a session may call it for itself without the permission. */
  readonly allowsOwnSession: boolean;
}

export interface Permission {
  readonly name: string;
  readonly allows: string;
  /** Empty means every type of application. */
  readonly holders: readonly string[];
}

const verbs = ["get", "put", "post", "patch", "delete"] as const;
type Carrier = DescMethod | DescService | DescMessage | DescField | DescExtension;

export function readContract(files: readonly DescFile[]): Contract {
  const registry = createRegistry(...files);

  /** All options as JSON, without unset fields. */
  const optionsOf = memoize(({ proto: { options } }: Carrier): JsonObject => {
    const schema = options && registry.getMessage(options.$typeName);
    return schema
      ? (toJson(schema, options, { registry, useProtoFieldName: true }) as JsonObject)
      : {};
  });

  function read<T>(carrier: Carrier, option: string): T | undefined {
    return optionsOf(carrier)[`[${option}]`] as T | undefined;
  }

  /** Reads an option of the contract itself. */
  function readOwn<T>(carrier: Carrier, option: string): T | undefined {
    return read(carrier, `${contractPackage}.${option}`);
  }

  const fieldRules = (field: DescField): FieldRules => read(field, "buf.validate.field") ?? {};
  const predefinedRules = (rules: object) =>
    Object.keys(rules)
      .map((name) => registry.getExtension(name.replace(/^\[|\]$/g, "")))
      .filter((extension) => extension !== undefined)
      .flatMap(
        (extension) => read<{ cel: Rule[] }>(extension, "buf.validate.predefined")?.cel ?? [],
      );

  return {
    registry,
    callerTypes: (registry.getEnum(`${contractPackage}.CallerType`)?.values ?? [])
      .filter(({ number }) => number !== 0)
      .map(({ name }) => toCallerType(name)),

    http: (method) => {
      const rule = read<HttpRule>(method, "google.api.http");
      const rules = rule ? [rule, ...(rule.additional_bindings ?? [])] : [];
      return rules.map((rule) => createBinding(method, rule));
    },
    access: (method) => {
      const access = readOwn<AccessOption>(method, "access") ?? {};
      return {
        permission: access.permission,
        callers: (access.callers ?? []).map(toCallerType),
        keyHeader: access.key_header,
        acceptsAuthorization: access.authorization_header ?? false,
        unauthenticated: access.unauthenticated ?? false,
        allowsOwnSession: access.own_session !== undefined,
      };
    },
    httpStatus: (method) => readOwn(method, "http_status"),
    errors: (method) => readOwn(method, "errors") ?? [],
    omittedFields: (method) => readOwn(method, "leaves_out") ?? [],
    responseExample: (method) => JSON.parse(readOwn(method, "response_example") ?? "{}"),
    isReplayable: (method) => readOwn(method, "replayable") ?? false,
    restText: (method, verb) =>
      readOwn<RestText[]>(method, "rest_texts")?.find((text) => text.verb === verb)?.text,
    rawItems: (method, side) => {
      const option = side === "input" ? "request_items" : "response_items";
      const name = readOwn<string>(method, option);
      return name === undefined ? undefined : registry.getMessage(`${contractPackage}.${name}`);
    },
    restFormat: (method) => readOwn(method, "rest_format") ?? ownFormat,
    permissions: (service) =>
      (readOwn<Permission[]>(service, "permissions") ?? []).map((permission) => ({
        ...permission,
        holders: (permission.holders ?? []).map(toCallerType),
      })),

    header: (field) => readOwn(field, "http_header"),
    textHeader: (field) => readOwn(field, "text_header"),
    isUpdateMask: ({ message }) => message?.typeName === "google.protobuf.FieldMask",
    isOutputOnly: (field) => readOwn(field, "output_only") !== undefined,
    messageRules: (message) => read<{ cel?: Rule[] }>(message, "buf.validate.message")?.cel ?? [],
    example: (message) => JSON.parse(readOwn(message, "example") ?? "{}"),
    fieldRules,
    isRequired(field) {
      const { required, repeated } = fieldRules(field);
      return (
        required === true ||
        Number(repeated?.min_items ?? 0) > 0 ||
        readOwn(field, "without_mask") === "WITHOUT_MASK_REQUIRED"
      );
    },
    predefinedRules: (rules) => predefinedRules(rules).filter((rule) => !listedIn(rule)),
    listRule: (rules) => predefinedRules(rules).find(listedIn),
    choices: (rules) => rules.in ?? predefinedRules(rules).map(listedIn).find(Boolean),
  };
}

type HttpRule = Partial<Record<(typeof verbs)[number] | "body", string>> & {
  readonly additional_bindings?: readonly HttpRule[];
};

interface RestText {
  readonly verb: string;
  readonly text: string;
}

interface AccessOption {
  readonly permission?: string;
  readonly callers?: readonly string[];
  readonly key_header?: string;
  readonly authorization_header?: boolean;
  readonly unauthenticated?: boolean;
  readonly own_session?: string;
}

function createBinding(method: DescMethod, rule: HttpRule): HttpBinding {
  const verb = verbs.find((name) => rule[name] !== undefined);
  const path = verb && rule[verb];
  if (!verb || !path) {
    throw new Error(`${method} has an unsupported http rule`);
  }
  const pathFields = parseTemplate(path).flatMap((part) => ("field" in part ? part.field : []));
  return { verb, path, pathFields, hasBody: rule.body === "*" };
}

function toCallerType(enumValue: string): string {
  return enumValue.replace("CALLER_TYPE_", "").toLowerCase();
}

/** The values in a rule such as `this in ['one', 'other']`. */
function listedIn({ expression }: Rule): string[] | undefined {
  const list = /this in \[([^\]]+)\]/.exec(expression)?.[1];
  return list?.split(", ").map((text) => text.slice(1, -1));
}

/** A CEL rule and its error message. */
export interface Rule {
  readonly id: string;
  readonly message: string;
  readonly expression: string;
}

/**
 * The protovalidate rules of a field, of the items of a list, or of the keys or values of a map, in protobuf
 * JSON: 64-bit numbers are strings, and the keys of our own rules are
 * `[their.full.name]`.
 */
export interface FieldRules {
  readonly required?: boolean;
  readonly cel?: readonly Rule[];
  readonly string?: StringRules;
  readonly int32?: Int32Rules;
  readonly double?: { readonly example?: readonly number[] };
  readonly bool?: { readonly example?: readonly boolean[] };
  readonly repeated?: RepeatedRules;
  readonly map?: MapRules;
  readonly duration?: DurationRules;
  readonly field_mask?: { readonly in?: readonly string[]; readonly example?: readonly string[] };
  readonly timestamp?: { readonly example?: readonly string[] };
}

export interface StringRules {
  readonly min_len?: string;
  readonly max_len?: string;
  readonly pattern?: string;
  readonly in?: readonly string[];
  readonly uuid?: boolean;
  readonly example?: readonly string[];
}

export interface Int32Rules {
  readonly lt?: number;
  readonly lte?: number;
  readonly gt?: number;
  readonly gte?: number;
  readonly example?: readonly number[];
}

interface DurationRules {
  readonly lt?: string;
  readonly lte?: string;
  readonly gt?: string;
  readonly gte?: string;
  readonly example?: readonly string[];
}

export interface RepeatedRules {
  readonly min_items?: string;
  readonly max_items?: string;
  readonly unique?: boolean;
  readonly items?: FieldRules;
}

export interface MapRules {
  readonly min_pairs?: string;
  readonly max_pairs?: string;
  readonly keys?: FieldRules;
  readonly values?: FieldRules;
}
