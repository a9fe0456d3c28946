import {
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  getOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import type { FieldViolation } from "../../src/contract/problems.js";
import { describeViolation, type RulesOf } from "../../src/validation/violation-messages.js";
import { type Contract, type FieldRules, ownFormat } from "./contract.js";

/**
 * Composes examples of messages from the examples in the rules of their fields and in the
 * options of messages and methods. All satisfy the rules of their message.
 */
export interface Examples {
  /** A request with as many fields as possible. */
  request(message: DescMessage): JsonObject;
  /** A request with as few fields as possible. */
  minimalRequest(message: DescMessage): JsonObject;
  response(method: DescMethod): JsonObject;
  /** A body that is a JSON array of the message. */
  items(message: DescMessage): JsonObject[];
}

interface Mode {
  readonly isResponse: boolean;
  readonly isMinimal: boolean;
  /** Whether empty lists and maps are included. */
  readonly hasEmpty: boolean;
  /** The paths of the omitted fields, relative to the message. */
  readonly omitted: readonly string[];
  /** The values of some fields. Those that are null are omitted. */
  readonly fixed: JsonObject;
}

const request: Mode = {
  isResponse: false,
  isMinimal: false,
  hasEmpty: false,
  omitted: [],
  fixed: {},
};
const response: Mode = { ...request, isResponse: true, hasEmpty: true };

export function createExamples(contract: Contract, validate: Validate): Examples {
  function findValid(message: DescMessage, mode: Mode): JsonObject {
    for (const example of createValid(message, mode)) {
      return example;
    }
    throw new Error(`no combination of the field examples of ${message} is valid`);
  }

  function* createValid(message: DescMessage, mode: Mode): Generator<JsonObject> {
    for (const example of createCandidates(message, mode)) {
      if (!setsOneofTwice(message, example) && validate(message, example).length === 0) {
        yield example;
      }
    }
  }

  /**
   * All fields of a message, then all but up to three, because rules may exclude some
   * combinations. The other way round if the example is minimal.
   */
  function* createCandidates(message: DescMessage, base: Mode): Generator<JsonObject> {
    const fixed = base.isMinimal ? {} : { ...contract.example(message), ...base.fixed };
    const mode = { ...base, fixed };
    const fields = message.fields.filter(
      (field) =>
        !mode.omitted.includes(field.name) &&
        fixed[field.name] !== null &&
        (mode.isResponse || !(isTimestamp(field) || contract.isOutputOnly(field))),
    );
    if (mode.isMinimal) {
      const optional = fields.filter((field) => !contract.isRequired(field));
      for (const included of subsetsOf(optional, 3)) {
        const excluded = optional.filter((field) => !included.includes(field));
        yield* combine(fields, excluded, mode);
      }
      return;
    }
    const excludable = fields.filter((field) => !(field.name in fixed));
    for (const excluded of subsetsOf(excludable.toReversed(), 3)) {
      yield* combine(fields, excluded, mode);
    }
  }

  function* combine(
    [field, ...others]: readonly DescField[],
    excluded: readonly DescField[],
    mode: Mode,
  ): Generator<JsonObject> {
    if (!field) {
      yield {};
      return;
    }
    for (const rest of combine(others, excluded, mode)) {
      const fixed = mode.fixed[field.name];
      if (fixed !== undefined) {
        yield { [field.name]: fixed, ...rest };
      } else if (!excluded.includes(field)) {
        for (const value of values(field, mode)) {
          yield { [field.name]: field.fieldKind === "list" ? [value] : value, ...rest };
        }
      } else if (mode.hasEmpty && (field.fieldKind === "list" || field.fieldKind === "map")) {
        yield { [field.name]: field.fieldKind === "list" ? [] : {}, ...rest };
      } else {
        yield rest;
      }
    }
  }

  function* values(field: DescField, mode: Mode): Generator<JsonValue> {
    const example = findExample(contract.fieldRules(field));
    if (example !== undefined) {
      yield example;
    } else if (field.message) {
      const nested = { ...mode, omitted: selectBelow(field, mode.omitted), fixed: {} };
      if (contract.messageRules(field.message).length > 0) {
        // The rules of the outer message may allow only some of its forms.
        yield* createValid(field.message, nested);
      } else {
        yield findValid(field.message, nested);
      }
    } else {
      throw new Error(`${field} has no example in its rules`);
    }
  }

  return {
    request: (message) => findValid(message, request),
    minimalRequest: (message) => findValid(message, { ...request, isMinimal: true }),
    response: (method) => {
      const omitted = contract.omittedFields(method);
      for (const path of omitted) {
        assertField(method.output, path);
      }
      return findValid(method.output, {
        ...response,
        hasEmpty: contract.restFormat(method) === ownFormat,
        omitted,
        fixed: contract.responseExample(method),
      });
    },
    items: (message) => [findValid(message, response)],
  };
}

/** A oneof with two fields cannot be read. */
function setsOneofTwice({ oneofs }: DescMessage, example: JsonObject): boolean {
  return oneofs.some(({ fields }) => fields.filter(({ name }) => name in example).length > 1);
}

/** Requests omit timestamps, which must be in the future, so that examples stay valid. */
function isTimestamp({ message }: DescField): boolean {
  return message?.typeName === "google.protobuf.Timestamp";
}

/** All subsets of at most `max` items, the smallest first. */
function subsetsOf<T>(items: readonly T[], max: number): T[][] {
  const choose = (from: readonly T[], count: number): T[][] =>
    count === 0
      ? [[]]
      : from.flatMap((item, index) =>
          choose(from.slice(index + 1), count - 1).map((rest) => [item, ...rest]),
        );
  return Array.from({ length: max + 1 }, (_, count) => choose(items, count)).flat();
}

function selectBelow(field: DescField, paths: readonly string[]): string[] {
  const prefix = `${field.name}.`;
  return paths.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
}

function assertField(message: DescMessage, path: string): void {
  let parent: DescMessage | undefined = message;
  for (const name of path.split(".")) {
    const field: DescField | undefined = parent?.fields.find((field) => field.name === name);
    if (!field) {
      throw new Error(`${message} has no field ${path} to omit`);
    }
    parent = field.message;
  }
}

/** The example in the rules of a field or of its items. That of a map has one pair. */
export function findExample(rules: FieldRules): JsonValue | undefined {
  if (rules.map) {
    const [key, value] = [rules.map.keys, rules.map.values].map((part) => findExample(part ?? {}));
    return key === undefined || value === undefined ? undefined : { [String(key)]: value };
  }
  const { string, int32, double, bool, duration, field_mask, timestamp } =
    rules.repeated?.items ?? rules;
  const verbatim = string ?? int32 ?? double ?? bool ?? duration ?? field_mask;
  return verbatim?.example?.[0] ?? timestamp?.example?.map(formatTimestamp)[0];
}

/** Formats a timestamp as the service does, with milliseconds. */
export function formatTimestamp(timestamp: string): string {
  return new Date(timestamp).toISOString();
}

/** Returns the violations of the rules of a message. */
type Validate = (message: DescMessage, json: JsonObject) => FieldViolation[];

/** Uses the validator and the messages of the service, so that examples match its responses. */
export function createValidate({ registry }: Contract): Validate {
  const validator = createValidator({ registry });
  const option = registry.getExtension("buf.validate.field");
  if (!option) {
    throw new Error("the protos do not import buf/validate/validate.proto");
  }
  const rulesOf = ((field) => getOption(field, option)) as RulesOf;
  return (message, json) => {
    const result = validator.validate(message, fromJson(message, json));
    if (result.kind === "error") {
      throw result.error;
    }
    return (result.violations ?? []).map((violation) => describeViolation(violation, rulesOf));
  };
}

/** Returns the violations of a request with one invalid field, if a field can be invalid. */
export function createViolations(
  message: DescMessage,
  example: JsonObject,
  validate: Validate,
): FieldViolation[] | undefined {
  for (const field of message.fields) {
    for (const value of invalidValues(field)) {
      const others = field.oneof?.fields.map(({ name }) => [name, null]) ?? [];
      const violations = validate(message, {
        ...example,
        ...Object.fromEntries(others),
        [field.name]: value,
      });
      if (violations.length > 0) {
        return violations;
      }
    }
  }
  return undefined;
}

/** Values that most rules refuse. */
function invalidValues(field: DescField): JsonValue[] {
  if (field.fieldKind === "map") {
    return [];
  }
  const scalars = invalidScalars(field.scalar);
  return field.fieldKind === "list" ? [...scalars.map((scalar) => [scalar]), []] : scalars;
}

function invalidScalars(scalar: ScalarType | undefined): (string | number)[] {
  switch (scalar) {
    case ScalarType.STRING:
      return ["?", ""];
    case ScalarType.INT32:
      return [0];
    default:
      return [];
  }
}
