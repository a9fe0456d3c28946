import {
  create,
  type DescMessage,
  fromJson,
  type MessageInitShape,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { BatchCheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  CreateApplicationRequestSchema,
  DeleteApplicationRequestSchema,
  ListApplicationsRequestSchema,
  RegenerateApplicationKeyRequestSchema,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { Problem } from "../../../src/errors.js";
import { newId } from "../../../src/lib/uuid.js";
import { createDecoder } from "../../../src/transport/rest/decode.js";
import { createEncoder } from "../../../src/transport/rest/encode.js";
import { parseJson } from "../../../src/validation/json.js";
import { durations, messageInits } from "../../support/generators/messages.js";
import { createSchema, fields, oneofSchema } from "../../support/generators/schemas.js";

type ApplicationInit = MessageInitShape<typeof ApplicationSchema>;

const maxDepth = 32;
const parse = (text: string) => parseJson(Buffer.from(text), maxDepth);

/** Runs a function that must throw a problem and returns its violations by field. */
function violationsOf(run: () => unknown): Record<string, string> {
  try {
    run();
  } catch (error) {
    if (error instanceof Problem) {
      return Object.fromEntries(error.violations.map(({ field, message }) => [field, message]));
    }
    throw error;
  }
  throw new Error("expected a problem");
}

describe("parsing a body", () => {
  it("returns the same value as JSON.parse", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("throws only problems for arbitrary bytes", () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      fc.string().map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(bytes, (bytes) => {
        try {
          parseJson(bytes, maxDepth);
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
        }
      }),
    );
  });

  it("refuses a duplicate name, even with escapes", () => {
    expect(violationsOf(() => parse('{"name":1,"name":2}'))).toHaveProperty("name");
    expect(violationsOf(() => parse('{"a":{"b":1,"\\u0062" : 2}}'))).toHaveProperty(["a.b"]);
  });

  it("refuses duplicate names and nothing else", () => {
    const name = fc.constantFrom("a", "b", "", "\\u0061", '\\"');
    const value = fc.json({ maxDepth: 2 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(name, value), { maxLength: 4 }),
        fc.nat(3),
        (members, depth) => {
          const object = `{${members.map(([name, value]) => `"${name}":${value}`).join(",")}}`;
          const text = `${'{"a":['.repeat(depth)}${object}${"]}".repeat(depth)}`;
          const names = members.map(([name]) => JSON.parse(`"${name}"`));
          if (new Set(names).size === names.length) {
            expect(parse(text)).toEqual(JSON.parse(text));
          } else {
            expect(Object.values(violationsOf(() => parse(text)))).toEqual([
              "is duplicated: send it once",
            ]);
          }
        },
      ),
    );
  });

  it("reads JSON up to the depth limit and refuses deeper nesting", () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    expect(parse(nested(32))).toEqual(JSON.parse(nested(32)));
    expect(violationsOf(() => parse(nested(33)))).toEqual({
      request: "is nested deeper than 32 levels",
    });
  });

  it("allows the same name in different objects", () => {
    expect(parse('[{"a":{"a":"a"}},{"a":"\\"a\\":{"}]')).toEqual([
      { a: { a: "a" } },
      { a: '"a":{' },
    ]);
  });

  it("refuses nesting of any depth over the limit", () => {
    expect(violationsOf(() => parse("[".repeat(500_000) + "]".repeat(500_000)))).toEqual({
      request: "is nested deeper than 32 levels",
    });
  });

  it("parses adversarial input in linear time", () => {
    const escapes = `"${'\\"'.repeat(500_000)}`;
    expect(violationsOf(() => parse(escapes))).toHaveProperty("request");
    expect(parse(`${escapes}"`)).toHaveLength(500_000);
  });

  it.each<[what: string, text: string]>([
    ["a list", `[${"1,".repeat(5_000)}1]`],
    ["a nested list", `{"a":[1,[${"{},".repeat(5_000)}{}]]}`],
    ["an object", `{${Array.from({ length: 5_001 }, (_, at) => `"${at}":1`).join()}}`],
    ["an unterminated list", `[${"1,".repeat(5_000)}`],
  ])("refuses %s with more than 5000 members before it is parsed", (_, text) => {
    const parseSpy = jest.spyOn(JSON, "parse");
    try {
      expect(violationsOf(() => parse(text))).toEqual({
        request: "contains an array or object with more than 5000 members",
      });
      expect(parseSpy).not.toHaveBeenCalled();
    } finally {
      parseSpy.mockRestore();
    }
  });

  it("accepts many commas in strings and in many lists", () => {
    for (const text of [`"${",".repeat(9_000)}"`, `[${"[1,1,1],".repeat(4_999)}[1]]`]) {
      expect(parse(text)).toEqual(JSON.parse(text));
    }
  });

  it("refuses bytes that are not UTF-8", () => {
    const bytes = Buffer.from([0x22, 0xc3, 0x28, 0x22]);
    expect(violationsOf(() => parseJson(bytes, maxDepth))).toEqual({
      request: "is not valid UTF-8",
    });
  });
});

describe("decoding a request", () => {
  const decoder = createDecoder(CreateApplicationRequestSchema, [], true);
  const decode = (body: unknown) => decoder.decode(body, {}, "");

  it("refuses a list over its limit without checking its items", () => {
    const unreadable = new Proxy({}, { get: () => expect("an item").toBe("not read") });
    const rules = Array.from({ length: 1_001 }, () => unreadable);
    expect(violationsOf(() => decode({ name: 1, rules }))).toEqual({
      rules: "must contain no more than 1000 items",
    });
    const permissions = Array.from({ length: 51 }, () => 1);
    expect(violationsOf(() => decode({ rules: [{}, { permissions }] }))).toEqual({
      "rules[1].permissions": "must contain no more than 50 items",
    });
  });

  it("refuses a map over its limit without checking its values", () => {
    const metadata = Object.fromEntries(Array.from({ length: 51 }, (_, index) => [index, 1]));
    expect(violationsOf(() => decode({ metadata }))).toEqual({
      metadata: "must contain no more than 50 pairs",
    });
  });

  it("reports every value of a map that is not a string, and every malformed text", () => {
    const text = '{"metadata":{"a":1,"b":null,"c.\\"d":{},"e":"\\ud800","\\udc00":"f","ok":""}}';
    expect(violationsOf(() => decode(parse(text)))).toEqual({
      'metadata["a"]': "must be a string",
      'metadata["b"]': "must be a string",
      'metadata["c.\\"d"]': "must be a string",
      'metadata["e"]': "has an unpaired surrogate",
      'metadata["\\udc00"]': "key has an unpaired surrogate",
    });
    for (const metadata of [[], "a", 1, true]) {
      expect(violationsOf(() => decode({ metadata }))).toEqual({ metadata: "must be an object" });
    }
  });

  it("keeps the keys of a map that are properties of every object", () => {
    const text = '{"metadata":{"__proto__":"a","constructor":"b","toString":"c"}}';
    const { metadata } = decode(parse(text)) as unknown as { metadata: object };
    expect(Object.entries(metadata)).toEqual([
      ["__proto__", "a"],
      ["constructor", "b"],
      ["toString", "c"],
    ]);
    expect(Object.getPrototypeOf(metadata)).toBe(Object.prototype);
    expect({}).not.toHaveProperty("a");
  });

  it("refuses duplicate keys of a map", () => {
    expect(violationsOf(() => parse('{"metadata":{"a":"1","\\u0061":"2"}}'))).toEqual({
      "metadata.a": "is duplicated: send it once",
    });
  });

  it("names the path of a duplicate name", () => {
    const text = '{"a":[1,"]",[2,{"b":{},"c":[3,4]}],{"d":"{","e":{"f":5,"f":6}}]}';
    expect(Object.keys(violationsOf(() => parse(text)))).toEqual(["a[3].e.f"]);
    expect(Object.keys(violationsOf(() => parse('[[],[0,{"a":1,"a":1}]]')))).toEqual(["[1][1].a"]);
  });

  it("stops at the first ten violations", () => {
    let reads = 0;
    const rule = {
      get priority() {
        reads++;
        return "none";
      },
    };
    const body = { rules: Array.from({ length: 1_000 }, () => rule) };
    expect(Object.keys(violationsOf(() => decode(body)))).toHaveLength(10);
    expect(() => decode(body)).toThrow(/rules\[9\]\.priority: .*; and more$/);
    expect(reads).toBeLessThan(50);
  });

  it("reads every field under its documented name", () => {
    const body = {
      name: "a",
      type: "private",
      permissions: ["token:read"],
      rules: [{ priority: 2, container: "/a/", transform: "mask", permissions: ["token:read"] }],
      expires_at: "2030-01-31T13:00:00.5+01:00",
    };
    expect(toJson(CreateApplicationRequestSchema, decode(body) as never)).toEqual({
      name: "a",
      type: "private",
      permissions: ["token:read"],
      rules: [{ priority: 2, container: "/a/", transform: "mask", permissions: ["token:read"] }],
      expiresAt: "2030-01-31T12:00:00.500Z",
    });
  });

  it.each([CreateApplicationRequestSchema, BatchCheckAccessRequestSchema, oneofSchema])(
    "reads the same message as the library for %s",
    (schema) => {
      const { decode } = createDecoder(schema, [], true);
      fc.assert(
        fc.property(messageInits(schema), (init) => {
          const message = create(schema as DescMessage, init as MessageInitShape<DescMessage>);
          const body = toJson(schema, message as never, { useProtoFieldName: true });
          expect(decode(body, {}, "")).toStrictEqual(message);
        }),
      );
    },
  );

  it("refuses two fields of a oneof in the body, the path or the query", () => {
    const refusal = "cannot be sent with text: send only one of text or whole_number";
    const body = createDecoder(oneofSchema, [], true);
    const inBody = { text: "a", whole_number: 1 };
    expect(violationsOf(() => body.decode(inBody, {}, ""))).toEqual({ whole_number: refusal });
    expect(body.decode({ text: null, whole_number: 0 }, {}, "")).toMatchObject({
      choice: { case: "wholeNumber", value: 0 },
    });
    const query = createDecoder(oneofSchema, ["text"], false);
    const inQuery = "whole_number=1";
    expect(violationsOf(() => query.decode({}, { text: "a" }, inQuery))).toEqual({
      whole_number: refusal,
    });
  });

  it("treats null as absent", () => {
    expect(decode({ name: "a", rules: null, expires_at: null })).toEqual(
      create(CreateApplicationRequestSchema, { name: "a" }),
    );
  });

  it("reports every unknown field and every wrong type in one response", () => {
    const body = {
      nam: "a",
      name: { $gt: "" },
      permissions: ["a:b", 1, null],
      rules: [{ priority: 1.5, conditions: {}, permissions: "a" }, 7],
      expires_at: "tomorrow",
      expiresAt: "2030-01-01T00:00:00Z",
    };
    expect(Object.keys(violationsOf(() => decode(body))).sort()).toEqual([
      "expiresAt",
      "expires_at",
      "nam",
      "name",
      "permissions[1]",
      "permissions[2]",
      "rules[0].conditions",
      "rules[0].permissions",
      "rules[0].priority",
      "rules[1]",
    ]);
  });

  it("does not echo a key that was sent as a field name", () => {
    const key = generateKey("prv", newId(0));
    expect(JSON.stringify(violationsOf(() => decode({ [key]: 1 })))).not.toContain(key);
  });

  it.each([
    ["2030-02-30T12:00:00Z"],
    ["2030-01-31T24:00:00Z"],
    ["2030-01-31"],
    ["2030-01-31T12:00:00"],
    [1_900_000_000],
  ])("refuses %j as a timestamp", (expires_at) => {
    expect(violationsOf(() => decode({ expires_at }))).toHaveProperty("expires_at");
  });

  it("reads a timestamp in lower case", () => {
    expect(decode({ expires_at: "2030-01-31t12:00:00z" })).toMatchObject({
      expiresAt: timestampFromMs(Date.UTC(2030, 0, 31, 12)),
    });
  });

  it("reads a duration with a fraction of a second", () => {
    const decoder = createDecoder(RegenerateApplicationKeyRequestSchema, ["id"], true);
    const decodePeriod = (grace_period: unknown) =>
      decoder.decode({ grace_period }, { id: "42" }, "");
    expect(decodePeriod("3600s")).toEqual(
      create(RegenerateApplicationKeyRequestSchema, { id: "42", gracePeriod: { seconds: 3_600n } }),
    );
    expect(decodePeriod("1.5s")).toMatchObject({
      gracePeriod: { seconds: 1n, nanos: 500_000_000 },
    });
    expect(decodePeriod(null)).toEqual(create(RegenerateApplicationKeyRequestSchema, { id: "42" }));
  });

  it("reads durations as the library does, alone and in a list", () => {
    for (const [field, values] of [
      [fields.duration, durations],
      [fields.durations, fc.array(durations)],
    ] as const) {
      const schema = createSchema(field, {});
      const { decode } = createDecoder(schema, [], true);
      fc.assert(
        fc.property(values, (value) => {
          const message = create(schema, { value } as MessageInitShape<DescMessage>);
          expect(decode(toJson(schema, message), {}, "")).toStrictEqual(message);
        }),
      );
    }
  });

  it.each([
    ["-1s"],
    ["-0.5s"],
    ["315576000001s"],
    [`${"9".repeat(400)}s`],
    ["1.0000000001s"],
    ["3600"],
    ["3600sec"],
    ["3600s\n"],
    [" 1s"],
    ["1.s"],
    [".5s"],
    ["1e3s"],
    ["1m"],
    ["PT1H"],
    [""],
    [3600],
    [true],
    [{ seconds: 1 }],
    [["1s"]],
  ])("refuses %j as a duration and names its path", (value) => {
    const message = "must be a duration such as 3600s";
    const single = createDecoder(createSchema(fields.duration, {}), [], true);
    expect(violationsOf(() => single.decode({ value }, {}, ""))).toEqual({ value: message });
    const list = createDecoder(createSchema(fields.durations, {}), [], true);
    const body = { value: ["1s", value] };
    expect(violationsOf(() => list.decode(body, {}, ""))).toEqual({ "value[1]": message });
  });

  it("reads every accepted duration as the library does", () => {
    const { decode } = createDecoder(createSchema(fields.duration, {}), [], true);
    const part = fc.constantFrom("0", "1", "9", "12", "000000000", "-", "+", ".", "s", "e", " ");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const value = `${parts.join("")}s`;
        try {
          const message = decode({ value }, {}, "");
          expect(message).toMatchObject({ value: fromJson(DurationSchema, value) });
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("treats names of inherited properties as unknown", () => {
    const body = JSON.parse('{"__proto__":{"name":"a"},"constructor":1,"toString":2}');
    expect(Object.keys(violationsOf(() => decode(body)))).toEqual([
      "__proto__",
      "constructor",
      "toString",
    ]);
    expect(({} as { name?: string }).name).toBeUndefined();
  });

  it("refuses an unpaired surrogate", () => {
    expect(violationsOf(() => decode({ name: "\ud83d" }))).toHaveProperty("name");
  });

  it.each([[null], [[]], ["{}"], [7], [true]])("refuses a body that is %j", (body) => {
    expect(violationsOf(() => decode(body))).toEqual({ request: "must be an object" });
  });

  it("throws only problems for arbitrary JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        try {
          decode(body);
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
        }
      }),
    );
  });
});

describe("decoding a path and a query", () => {
  it("reads path fields from the path and not from the body", () => {
    const decoder = createDecoder(UpdateApplicationRequestSchema, ["id"], true);
    expect(decoder.decode({ name: "a" }, { id: "42" }, "")).toMatchObject({
      id: "42",
      name: "a",
    });
    expect(violationsOf(() => decoder.decode({ id: "43" }, { id: "42" }, ""))).toHaveProperty("id");
  });

  it("does not read header fields from the path or the query", () => {
    const decoder = createDecoder(DeleteApplicationRequestSchema, ["id"], false);
    const parameters = "if_match=17";
    expect(violationsOf(() => decoder.decode({}, { id: "42" }, parameters))).toEqual({
      if_match: "is not a parameter of this path",
    });
  });

  const list = createDecoder(ListApplicationsRequestSchema, [], false);
  const query = (text: string) => list.decode({}, {}, text);

  it("reads numbers, and repeated parameters as lists", () => {
    expect(query("id=a&page=2&id=b")).toMatchObject({ id: ["a", "b"], page: 2 });
  });

  it("treats a parameter without a value as absent", () => {
    expect(query("id=&page=&size=&start=")).toEqual(create(ListApplicationsRequestSchema));
  });

  it("reads a valid duration and refuses an invalid one", () => {
    const { decode } = createDecoder(createSchema(fields.duration, {}), [], false);
    expect(decode({}, {}, "value=1.5s")).toMatchObject({
      value: { seconds: 1n, nanos: 500_000_000 },
    });
    const bad = "value=90";
    expect(violationsOf(() => decode({}, {}, bad))).toHaveProperty("value");
  });

  it("refuses unknown, repeated and non-numeric parameters", () => {
    const violations = violationsOf(() => query("pag=1&size=2&size=3&page=1e3"));
    expect(Object.keys(violations).sort()).toEqual(["pag", "page", "size"]);
  });

  it("refuses query parameters on methods with a body", () => {
    const decoder = createDecoder(CreateApplicationRequestSchema, [], true);
    const parameters = "name=b";
    expect(violationsOf(() => decoder.decode({ name: "a" }, {}, parameters))).toEqual({
      name: "is not a parameter of this path",
    });
  });

  it("refuses a path field that the request message does not have", () => {
    expect(() => createDecoder(UpdateApplicationRequestSchema, ["ID"], true)).toThrow(
      "no field ID",
    );
  });
});

describe("encoding a response", () => {
  const encoder = createEncoder(ApplicationSchema);
  const encode = (message: object) => encoder(message).toString();

  it("always writes arrays and maps, omits absent optional fields, and writes dates with milliseconds", () => {
    const application = create(ApplicationSchema, {
      id: "1",
      tenantId: "2",
      name: 'a "b"\u2028',
      type: "private",
      rules: [{ id: "r", priority: 1, transform: "mask", permissions: ["a:b"] }],
      createdAt: timestampFromMs(Date.UTC(2030, 0, 1)),
      version: "3",
      status: "enabled",
    });
    expect(JSON.parse(encode(application))).toEqual({
      id: "1",
      tenant_id: "2",
      name: 'a "b"\u2028',
      type: "private",
      permissions: [],
      rules: [{ id: "r", priority: 1, conditions: [], transform: "mask", permissions: ["a:b"] }],
      created_at: "2030-01-01T00:00:00.000Z",
      version: "3",
      status: "enabled",
      allowed_origins: [],
      allowed_cidrs: [],
      metadata: {},
    });
  });

  it("writes the same as the library, except names and timestamps", () => {
    fc.assert(
      fc.property(messageInits(ApplicationSchema), (init) => {
        const { createdAt, modifiedAt, expiresAt, lastUsedAt, ...others } = init;
        const timestamps = createdAt ? { createdAt: timestampFromMs(1) } : {};
        const message = create(ApplicationSchema, { ...others, ...timestamps } as ApplicationInit);
        const options = { useProtoFieldName: true, alwaysEmitImplicit: true };
        expect(JSON.parse(encode(message))).toEqual(toJson(ApplicationSchema, message, options));
      }),
    );
  });

  it("writes durations as the library does", () => {
    const schema = createSchema(fields.duration, {});
    const encodeDuration = createEncoder(schema);
    fc.assert(
      fc.property(durations, (value) => {
        const message = create(schema, { value } as MessageInitShape<DescMessage>);
        expect(JSON.parse(encodeDuration(message).toString())).toEqual(toJson(schema, message));
      }),
    );
    expect(encodeDuration({ value: { seconds: 3_600n } }).toString()).toBe('{"value":"3600s"}');
    expect(encodeDuration({}).toString()).toBe("{}");
  });

  it.each([
    [{ seconds: 0n, nanos: 0 }, "1970-01-01T00:00:00.000Z"],
    [{ seconds: 1n, nanos: 1_000_000 }, "1970-01-01T00:00:01.001Z"],
    [{ seconds: -1n, nanos: 999_000_000 }, "1969-12-31T23:59:59.999Z"],
    [{ seconds: 1n, nanos: 999_999_999 }, "1970-01-01T00:00:02.000Z"],
    [{ seconds: 253_402_300_799n, nanos: 0 }, "9999-12-31T23:59:59.000Z"],
  ])("writes the timestamp %j as %s", (createdAt, text) => {
    expect(JSON.parse(encode({ createdAt }))).toMatchObject({ created_at: text });
  });
});
