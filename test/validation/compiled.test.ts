import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  getOption,
  type Message,
  type MessageInitShape,
  ScalarType,
  setExtension,
} from "@bufbuild/protobuf";
import { DurationSchema, durationFromMs } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type DurationRules,
  DurationRulesSchema,
  type FieldRules,
  field as fieldRules,
  Ignore,
  MapRulesSchema,
  predefined,
  type StringRules,
  StringRulesSchema,
} from "../../gen/buf/validate/validate_pb.js";
import { AccessRuleConditionSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import {
  BatchCheckAccessRequestSchema,
  CheckAccessRequestSchema,
  ListPermissionsRequestSchema,
  StreamCheckAccessRequestSchema,
  WatchCredentialsRequestSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import {
  CreateApplicationRequestSchema,
  GetApplicationRequestSchema,
  ListApplicationsRequestSchema,
  RegenerateApplicationKeyRequestSchema,
  UpdateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import {
  container_path,
  network,
  one_line,
  optional_line,
  permission_name,
  plain_text,
  principal_key,
  web_origin,
} from "../../gen/latchkey/v1/rules_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { generateKey } from "../../src/auth/keys.js";
import { validationRules } from "../../src/contract/fields.js";
import { services } from "../../src/contract/methods.js";
import { newId } from "../../src/lib/uuid.js";
import { compileCheck } from "../../src/validation/compiled/checks.js";
import { readExpression } from "../../src/validation/compiled/expressions.js";
import { createSchema, fields, recursiveSchema } from "../support/generators/schemas.js";
import { repetitions } from "../support/jest/suite.js";

type Init = MessageInitShape<DescMessage>;

const requests = services.flatMap(({ methods }) => methods.map(({ input }) => input));
const customRules = [
  permission_name,
  one_line,
  optional_line,
  plain_text,
  container_path,
  principal_key,
  web_origin,
  network,
];

const validator = createValidator({ registry: validationRules });
const isValid = (schema: DescMessage, message: Message) =>
  validator.validate(schema, message).kind === "valid";

function passesCompiledCheck(schema: DescMessage, init: object): boolean {
  return compileCheck(schema)?.(create(schema, init as Init)) ?? false;
}

describe("compiled check", () => {
  it.each(requests)("supports all rules of %s", (schema) => {
    expect(compileCheck(schema)).toBeDefined();
  });

  const rule = { priority: 1, transform: "mask", permissions: ["token:read"] };
  const condition = { attribute: "container", operator: "equals", value: "/a/" };
  const name = "Café \u00a3 5";
  const grants = { permissions: ["token:read", "token:read:bulk"], rules: [] };
  const rules = [{ ...rule, container: "/pci/high/", description: "a\n\tb" }];
  const restrictions = {
    allowedOrigins: ["https://shop.example.com", "http://[::1]:3000"],
    allowedCidrs: ["203.0.113.0/24", "2001:db8::/32", "::ffff:1.2.3.4"],
  };
  const labels = {
    description: "a\nb",
    externalId: "svc 4711",
    metadata: { team: "", "a.b": "c\n", ["__proto__"]: "d" },
  };
  const check = {
    principal: { case: "key", value: generateKey("prv", newId(0)) },
    permission: "token:read",
    token: { id: "card-4242", container: "/pci/" },
  };
  const id = newId(0);
  const paths = ["allowed_cidrs", "allowed_origins"];

  it.each<[DescMessage, object]>([
    [CreateApplicationRequestSchema, { name, type: "private", ...grants }],
    [CreateApplicationRequestSchema, { name, type: "public", rules, expiresAt: {} }],
    [CreateApplicationRequestSchema, { name, type: "public", ...grants, ...restrictions }],
    [CreateApplicationRequestSchema, { name, type: "public", ...grants, ...labels }],
    [
      CreateApplicationRequestSchema,
      { name, type: "public", rules, description: "", externalId: "" },
    ],
    [UpdateApplicationRequestSchema, { id, name, ...grants, ...restrictions, ...labels }],
    [UpdateApplicationRequestSchema, { id, name, ...grants, updateMask: { paths } }],
    [GetApplicationRequestSchema, { id }],
    [ListApplicationsRequestSchema, { id: [id], page: 1, size: 100 }],
    [ListApplicationsRequestSchema, { start: "a".repeat(100) }],
    [RegenerateApplicationKeyRequestSchema, { id }],
    [RegenerateApplicationKeyRequestSchema, { id, gracePeriod: {} }],
    [RegenerateApplicationKeyRequestSchema, { id, gracePeriod: { seconds: 1n, nanos: 1 } }],
    [RegenerateApplicationKeyRequestSchema, { id, gracePeriod: { seconds: 2_592_000n } }],
    [AuthorizeSessionRequestSchema, { nonce: "a", rules: [{ ...rule, conditions: [condition] }] }],
    [CheckAccessRequestSchema, check],
    [CheckAccessRequestSchema, { ...check, token: undefined }],
    [CheckAccessRequestSchema, { ...check, principal: { case: "sessionId", value: id } }],
    [CheckAccessRequestSchema, { ...check, principal: { case: "externalId", value: "a" } }],
    [CheckAccessRequestSchema, { ...check, origin: "null", address: "::1" }],
    [BatchCheckAccessRequestSchema, { checks: [{}] }],
    [StreamCheckAccessRequestSchema, { correlationId: "", check }],
    [ListPermissionsRequestSchema, { type: "public" }],
    [WatchCredentialsRequestSchema, { heartbeat: durationFromMs(50) }],
  ])("accepts a valid %s", (schema, init) => {
    expect(passesCompiledCheck(schema, init)).toBe(true);
    expect(isValid(schema, create(schema, init as Init))).toBe(true);
  });

  it("agrees with protovalidate on the container of a condition", () => {
    const path = fc.array(fc.constantFrom("a", "/", ".", "..", " "), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(path, fc.constantFrom("equals", "starts_with"), (parts, operator) => {
        const init = { attribute: "container", operator, value: parts.join("") };
        expect(passesCompiledCheck(AccessRuleConditionSchema, init)).toBe(
          isValid(AccessRuleConditionSchema, create(AccessRuleConditionSchema, init)),
        );
      }),
    );
  });

  it.each(requests)("accepts no %s that protovalidate refuses", (schema) => {
    const compiledCheck = compileCheck(schema);
    fc.assert(
      fc.property(boundaryMessage(schema), (init) => {
        const message = create(schema, init as Init);
        if (compiledCheck?.(message)) {
          expect(validator.validate(schema, message)).toMatchObject({ kind: "valid" });
        }
      }),
      { numRuns: repetitions({ quick: 50, full: 75 }) },
    );
  });
});

describe("compiled check of single rules", () => {
  const text = fc.oneof(fc.string({ maxLength: 6 }), fc.string({ unit: "binary", maxLength: 6 }));
  const count = fc.bigInt({ min: 0n, max: 5n });
  const stringRules = fc.record(
    {
      minLen: count,
      maxLen: count,
      in: fc.array(text, { maxLength: 2 }),
      pattern: fc.constantFrom("^a*$", "[^a]", "^(a|b){2,3}$", "."),
      wellKnown: fc.record({ case: fc.constant("uuid" as const), value: fc.boolean() }),
    },
    { requiredKeys: [] },
  );
  const common = {
    required: fc.boolean(),
    ignore: fc.constantFrom(Ignore.UNSPECIFIED, Ignore.IF_ZERO_VALUE, Ignore.ALWAYS),
  };
  const values = fc.oneof(text, fc.constantFrom("", "aa", "ab", "𝑎𝑎", "\ud83d", newId(0)));

  it.each([["string"], ["optionalString"]] as const)(
    "agrees with protovalidate on a %s",
    (kind) => {
      const rules = fc.record(
        {
          ...common,
          type: fc.record({ case: fc.constant("string" as const), value: stringRules }),
        },
        { requiredKeys: [] },
      );
      expectAgreement(
        rules.map((rules) => createSchema(fields[kind], rules)),
        fc.oneof(values, fc.constant(undefined)),
      );
    },
  );

  it("agrees with protovalidate on a number", () => {
    const bound = fc.integer({ min: -3, max: 3 });
    const int32 = fc.record(
      {
        lessThan: fc.record({ case: fc.constantFrom("lt" as const, "lte" as const), value: bound }),
        greaterThan: fc.record({
          case: fc.constantFrom("gt" as const, "gte" as const),
          value: bound,
        }),
      },
      { requiredKeys: [] },
    );
    const rules = fc.record(
      { ...common, type: fc.record({ case: fc.constant("int32" as const), value: int32 }) },
      { requiredKeys: [] },
    );
    expectAgreement(
      rules.map((rules) => createSchema(fields.int32, rules)),
      fc.integer({ min: -4, max: 4 }),
    );
  });

  const duration = fc.record({
    seconds: fc.oneof(fc.bigInt({ min: -2n, max: 2n }), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)),
    // Includes invalid durations: mixed signs, or a second and more of nanoseconds.
    nanos: fc.oneof(fc.integer({ min: -1, max: 1 }), fc.integer()),
  });
  const durationRules = fc.record(
    {
      lessThan: fc.record({
        case: fc.constantFrom("lt" as const, "lte" as const),
        value: duration,
      }),
      greaterThan: fc.record({
        case: fc.constantFrom("gt" as const, "gte" as const),
        value: duration,
      }),
    },
    { requiredKeys: [] },
  );
  const durationFieldRules = fc.record(
    {
      ...common,
      type: fc.record({ case: fc.constant("duration" as const), value: durationRules }),
    },
    { requiredKeys: [] },
  );

  it("agrees with protovalidate on a duration", () => {
    expectAgreement(
      durationFieldRules.map((rules) => createSchema(fields.duration, rules)),
      fc.oneof(duration, fc.constant(undefined)),
    );
  });

  it("agrees with protovalidate on durations in a list", () => {
    expectAgreement(
      durationFieldRules.map((items) =>
        createSchema(fields.durations, { type: { case: "repeated", value: { items } } }),
      ),
      fc.array(duration, { maxLength: 3 }),
    );
  });

  it.each([
    ["gt", "1s", ["1.000000001s", "2s"]],
    ["gte", "1s", ["1s", "1.000000001s", "2s"]],
    ["lt", "1s", ["-1s", "0s", "0.999999999s"]],
    ["lte", "1s", ["-1s", "0s", "0.999999999s", "1s"]],
  ])("accepts durations that are %s %s: %j", (kind, bound, expected) => {
    const value = fromJson(DurationRulesSchema, { [kind]: bound });
    const schema = createSchema(fields.duration, { type: { case: "duration", value } });
    const texts = ["-1s", "0s", "0.999999999s", "1s", "1.000000001s", "2s"];
    expect(
      texts.filter((text) =>
        passesCompiledCheck(schema, { value: fromJson(DurationSchema, text) }),
      ),
    ).toEqual(expected);
  });

  it("agrees with protovalidate on a list", () => {
    const repeated = fc.record(
      {
        minItems: count,
        maxItems: count,
        unique: fc.boolean(),
        items: fc.record(
          {
            ...common,
            type: fc.record({ case: fc.constant("string" as const), value: stringRules }),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    );
    const rules = fc.record(
      { ...common, type: fc.record({ case: fc.constant("repeated" as const), value: repeated }) },
      { requiredKeys: [] },
    );
    expectAgreement(
      rules.map((rules) => createSchema(fields.strings, rules)),
      fc.array(values, { maxLength: 12 }),
    );
  });

  it("agrees with protovalidate on a map", () => {
    const part = fc.record(
      {
        ...common,
        type: fc.record({ case: fc.constant("string" as const), value: stringRules }),
      },
      { requiredKeys: [] },
    );
    const map = fc.record(
      { minPairs: count, maxPairs: count, keys: part, values: part },
      { requiredKeys: [] },
    );
    const rules = fc.record(
      { ...common, type: fc.record({ case: fc.constant("map" as const), value: map }) },
      { requiredKeys: [] },
    );
    const keys = fc.oneof(values, fc.constantFrom("__proto__", "constructor"));
    expectAgreement(
      rules.map((rules) => createSchema(fields.map, rules)),
      fc.array(fc.tuple(keys, values), { maxLength: 6 }).map(Object.fromEntries),
    );
  });

  it.each([
    ["has(this.value)"],
    ["!has(this.value)"],
    ["!(has(this.value) && has(this.value)) || has(this.value)"],
    ["has(this.value) || !has(this.value) && has(this.value)"],
  ])("agrees with protovalidate on %s", (expression) => {
    expectAgreement(
      fc.constant(createSchema(fields.optionalString, {}, [expression])),
      fc.oneof(values, fc.constant(undefined)),
    );
  });

  it.each([
    ["this.value.size() > 0"],
    ["this.value.size() == 2"],
    ["!(this.value.size() > 1) && (this.value.size() > 0 || this.value.size() == 0)"],
  ])("agrees with protovalidate on %s", (expression) => {
    expectAgreement(
      fc.constant(createSchema(fields.strings, {}, [expression])),
      fc.array(values, { maxLength: 3 }),
    );
  });

  it.each([
    ["this.value == 'a'"],
    ["has(this.nothing)"],
    ["this.value.size() > 0"],
    ["has(this.value) ? true : false"],
    ["(has(this.value)"],
    ["has(this.value))"],
    ["this.matches('a')"],
    [""],
  ])("leaves unsupported expressions to protovalidate: %s", (expression) => {
    expect(compileCheck(createSchema(fields.optionalString, {}, [expression]))).toBeUndefined();
  });

  it("leaves ignored messages with lists to protovalidate, because the lists may be too long", () => {
    const itemsWith = (ignore: Ignore) =>
      createSchema(fields.messages, {
        type: { case: "repeated", value: { items: { ignore } } },
      });
    expect(compileCheck(itemsWith(Ignore.ALWAYS))).toBeUndefined();
    expect(compileCheck(itemsWith(Ignore.UNSPECIFIED))).toBeDefined();
  });

  it("leaves recursive messages to protovalidate", () => {
    expect(compileCheck(recursiveSchema)).toBeUndefined();
  });

  it("leaves disabled custom rules to protovalidate", () => {
    const value = create(StringRulesSchema);
    setExtension(value, permission_name, false);
    expect(
      compileCheck(createSchema(fields.string, { type: { case: "string", value } })),
    ).toBeUndefined();
  });

  it("leaves unknown duration rules to protovalidate", () => {
    const value = create(DurationRulesSchema);
    value.$unknown = [{ no: 7, wireType: 2, data: Uint8Array.from([0]) }];
    expect(
      compileCheck(createSchema(fields.duration, { type: { case: "duration", value } })),
    ).toBeUndefined();
  });

  it("leaves unknown rules to protovalidate", () => {
    const value = create(StringRulesSchema);
    value.$unknown = [{ no: 7, wireType: 2, data: Uint8Array.from([1, 0x61]) }];
    expect(
      compileCheck(createSchema(fields.string, { type: { case: "string", value } })),
    ).toBeUndefined();
  });
});

describe("patterns", () => {
  const expressions = customRules.flatMap((rule) => getOption(rule, predefined).cel);
  const tests = expressions.map(({ expression }) => readExpression(expression, "string"));
  const schemas = customRules.map((rule) => {
    const value = create(StringRulesSchema);
    setExtension(value, rule, true);
    return createSchema(fields.string, { type: { case: "string", value } });
  });
  const validators = customRules.map(() => createValidator({ registry: validationRules }));

  const embed = (it: string) => [it, `a${it}b`, `a:${it}`, `/${it}/`, `https://a${it}`];

  function acceptsValue(rule: number, value: string): boolean {
    const schema = schemas[rule] as DescMessage;
    const message = create(schema, { value } as Init);
    return validators[rule]?.validate(schema, message).kind === "valid";
  }

  it.each(customRules.map(({ name }, at) => [name, at] as const))(
    "have the same meaning for every character up to U+00FF: %s",
    (_, at) => {
      for (let code = 0; code <= 0xff; code++) {
        const character = String.fromCharCode(code);
        for (const text of embed(character)) {
          expect([text, tests[at]?.(text)]).toEqual([text, acceptsValue(at, text)]);
        }
      }
    },
  );

  it.each(customRules.map(({ name }, at) => [name, at] as const))(
    "match no text that the rule refuses: %s",
    (_, at) => {
      fc.assert(
        fc.property(hostileText, (text) => {
          if (tests[at]?.(text)) {
            expect([text, acceptsValue(at, text)]).toEqual([text, true]);
          }
        }),
        { numRuns: repetitions({ quick: 50, full: 75 }) },
      );
    },
  );

  // A backtracking match of these would not terminate.
  it.each(customRules.map(({ name }, at) => [name, at] as const))(
    "do not backtrack on ambiguous text: %s",
    (_, at) => {
      const parts = ["a", "a:", ":a", "/a", "a/", "/", ".", "./", "../", "\n", " ", "-", "lk_prv_"];
      for (const part of parts) {
        const long = part.repeat(1_000).slice(0, 1_000);
        for (const text of [long, `a:${long}`, `${long}!`, `${long}\u0000`, `${long}//`]) {
          tests[at]?.(text);
        }
      }
    },
  );
});

function expectAgreement(schemas: fc.Arbitrary<DescMessage>, values: fc.Arbitrary<unknown>): void {
  fc.assert(
    fc.property(schemas, fc.array(values, { minLength: 5, maxLength: 10 }), (schema, values) => {
      const compiledCheck = compileCheck(schema);
      const validator = createValidator();
      for (const value of values) {
        const message = create(schema, { value } as Init);
        if (compiledCheck?.(message)) {
          expect(validator.validate(schema, message)).toMatchObject({ kind: "valid" });
        }
      }
    }),
    { numRuns: repetitions({ quick: 30, full: 45 }) },
  );
}

/** Edge cases of text rules: category boundaries, invisible characters, lone surrogates. */
const hostilePart = fc.constantFrom(
  ..."aZ09:_-/. \n\t\u0000\u001f\u007f\u0085\u00a0\u00ad\u00ff\u0100\u0600\u180e\u200b\u2028\u2029",
  ..."\u202a\u202e\u2066\u2069\u206a\ufeff\ud7ff\ue000\uffff",
  "\ud83d",
  "\ude00",
  "😀",
  "\u{e0001}",
  "\u{1bca0}",
  "\u{13430}",
  "..",
  "//",
  "https://",
  "token:read",
);
const hostileText = fc.array(hostilePart, { maxLength: 6 }).map((parts) => parts.join(""));

/** Generates messages with values at the limits of their rules. */
function boundaryMessage(schema: DescMessage): fc.Arbitrary<object> {
  const entries = schema.members.map((member) => [
    member.localName,
    member.kind === "oneof" ? boundaryChoice(member) : boundaryValue(member),
  ]);
  const complete = fc.record(Object.fromEntries(entries));
  return fc.oneof(
    { weight: 3, arbitrary: complete },
    { weight: 1, arbitrary: fc.record(Object.fromEntries(entries), { requiredKeys: [] }) },
  );
}

function boundaryChoice({ fields }: DescOneof): fc.Arbitrary<object> {
  const choices = fields.map((field) =>
    fc.record({
      case: fc.constant(field.localName),
      value: boundaryItem(field, getOption(field, fieldRules)),
    }),
  );
  return fc.oneof(fc.constant({ case: undefined }), ...choices);
}

function boundaryValue(field: DescField): fc.Arbitrary<unknown> {
  if (field.fieldKind === "map") {
    return boundaryMap(field);
  }
  if (field.fieldKind !== "list") {
    return fc.oneof(
      { weight: 9, arbitrary: boundaryItem(field, getOption(field, fieldRules)) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    );
  }
  const { type } = getOption(field, fieldRules);
  const item = boundaryItem(field, type.case === "repeated" ? type.value.items : undefined);
  const maxItems = type.case === "repeated" ? Number(type.value.maxItems) : 0;
  return fc.oneof(
    { weight: 20, arbitrary: fc.array(item, { maxLength: 3 }) },
    { weight: 1, arbitrary: item.map((value) => Array(Math.min(maxItems + 1, 60)).fill(value)) },
  );
}

function boundaryMap(field: DescField): fc.Arbitrary<object> {
  const { type } = getOption(field, fieldRules);
  const { keys, values, maxPairs } = type.case === "map" ? type.value : create(MapRulesSchema);
  const pair = fc.tuple(boundaryItem(field, keys), boundaryItem(field, values));
  const maxLength = Number(maxPairs) + 1;
  return fc.oneof(
    { weight: 20, arbitrary: fc.array(pair, { maxLength: 3 }).map(Object.fromEntries) },
    {
      weight: 1,
      arbitrary: pair.map(([, value]) =>
        Object.fromEntries(Array.from({ length: maxLength }, (_, index) => [`k${index}`, value])),
      ),
    },
  );
}

function boundaryItem(field: DescField, rules: FieldRules | undefined): fc.Arbitrary<unknown> {
  if (rules?.type.case === "duration") {
    return boundaryDuration(rules.type.value);
  }
  if (rules?.type.case === "fieldMask") {
    const names = [...rules.type.value.in, "metadata.team", "nothing", ""];
    return fc.record({ paths: fc.array(fc.constantFrom(...names), { maxLength: 3 }) });
  }
  if (field.message) {
    return boundaryMessage(field.message);
  }
  switch (rules?.type.case) {
    case "string":
      return boundaryText(rules.type.value);
    case "int32": {
      const bounds = [
        rules.type.value.lessThan.value ?? 0,
        rules.type.value.greaterThan.value ?? 0,
      ];
      return fc.constantFrom(...bounds.flatMap((bound) => [bound - 1, bound, bound + 1]));
    }
    default:
      return fc.constant(field.scalar === ScalarType.INT64 ? 0n : 0);
  }
}

function boundaryDuration({ lessThan, greaterThan, example }: DurationRules) {
  const bounds = [...example, lessThan.value, greaterThan.value].filter((it) => it !== undefined);
  return fc
    .tuple(fc.constantFrom(...bounds), fc.constantFrom(-1n, 0n, 1n), fc.constantFrom(-1, 0, 1))
    .map(([bound, seconds, nanos]) => ({
      seconds: bound.seconds + seconds,
      nanos: bound.nanos + nanos,
    }));
}

function boundaryText(rules: StringRules): fc.Arbitrary<string> {
  const valid = fc.constantFrom(...rules.in, ...rules.example);
  const lengths = [rules.minLen, rules.maxLen].flatMap((length) => [
    length - 1n,
    length,
    length + 1n,
  ]);
  const padded = fc
    .tuple(valid, fc.constantFrom(...lengths.map(Number)), fc.constantFrom("a", "😀", "é"))
    .map(([text, length, filler]) => text.padEnd(length * filler.length, filler));
  const corrupted = fc.tuple(valid, fc.nat(), hostilePart).map(([text, at, part]) => {
    const index = at % (text.length + 1);
    return text.slice(0, index) + part + text.slice(index + (at % 2));
  });
  return fc.oneof(
    { weight: 6, arbitrary: valid },
    { weight: 1, arbitrary: padded },
    { weight: 1, arbitrary: corrupted },
    { weight: 1, arbitrary: hostileText },
  );
}
