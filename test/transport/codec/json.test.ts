import {
  create,
  type DescMessage,
  fromJsonString,
  type JsonWriteOptions,
  type MessageInitShape,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";
import {
  DurationSchema,
  StringValueSchema,
  StructSchema,
  TimestampSchema,
  timestampFromMs,
} from "@bufbuild/protobuf/wkt";
import { afterAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  CreateApplicationRequestSchema,
  RegenerateApplicationKeyRequestSchema,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { services } from "../../../src/contract/methods.js";
import {
  createConnectJsonDecoder,
  createConnectJsonEncoder,
  createJsonOptions,
} from "../../../src/transport/codec/connect-json.js";
import { isRawBody } from "../../../src/transport/rpc/methods.js";
import { toTimestamp } from "../../../src/validation/time.js";
import { durations, messageInits } from "../../support/generators/messages.js";
import {
  createSchema,
  fields,
  oneofSchema,
  recursiveSchema,
} from "../../support/generators/schemas.js";
import { repetitions } from "../../support/jest/suite.js";

// Each property runs for every message of the contract.
fc.configureGlobal({ numRuns: repetitions({ quick: 10, full: 15 }) });
afterAll(() => fc.resetConfigureGlobal());

const jsonOptionsWith = (maxDepth: number) => createJsonOptions([], maxDepth);
const jsonOptions = jsonOptionsWith(32);

const schemas = [
  oneofSchema,
  ...new Set(services.flatMap(({ methods }) => methods.flatMap((it) => [it.input, it.output]))),
].filter((schema) => !isRawBody(schema));

/** Types that the fast codecs leave to the library. */
const unsupported: [DescMessage, object][] = [
  [HttpBodySchema, { contentType: "text/plain", data: Buffer.from("a") }],
  [StringValueSchema, { value: "a" }],
  [StructSchema, { fields: { a: { kind: { case: "numberValue", value: 1 } } } }],
  [recursiveSchema, { next: { next: {} } }],
  [
    ServerReflectionRequestSchema,
    { host: "a", messageRequest: { case: "listServices", value: "b" } },
  ],
];

const writeOptions = { alwaysEmitImplicit: true };
const messageOf = (schema: DescMessage, init: object) =>
  create(schema, init as MessageInitShape<DescMessage>);

/** Returns the result of a function or the error that it throws. */
function outcomeOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return { error: (error as Error).message };
  }
}

function createTextEncoder(schema: DescMessage): (message: object) => string {
  const encode = createConnectJsonEncoder(schema, jsonOptions);
  return (message) => encode(message).toString();
}

describe("encoding Connect JSON", () => {
  it.each(schemas)("writes the same JSON as the library for %s", (schema) => {
    const encode = createTextEncoder(schema);
    fc.assert(
      fc.property(messageInits(schema), (init) => {
        const message = messageOf(schema, init);
        const expected = toJson(schema, message, writeOptions);
        expect(JSON.parse(encode(init))).toStrictEqual(expected);
        expect(JSON.parse(encode(message))).toStrictEqual(expected);
      }),
    );
  });

  it.each(unsupported)("writes %s with the library", (schema, init) => {
    const expected = toJson(schema, messageOf(schema, init), writeOptions);
    expect(JSON.parse(createTextEncoder(schema)(init))).toStrictEqual(expected);
  });

  it.each([
    [{ seconds: -62_135_596_800n, nanos: 0 }],
    [{ seconds: -62_135_596_801n, nanos: 0 }],
    [{ seconds: 253_402_300_799n, nanos: 999_999_999 }],
    [{ seconds: 253_402_300_800n, nanos: 0 }],
    [{ seconds: -1n, nanos: 1 }],
    [{ seconds: 0n, nanos: -1 }],
    [{ seconds: 0n, nanos: 1_000_000_000 }],
    [{ seconds: 1n, nanos: 10 }],
    [{ seconds: 1n, nanos: 120_000_000 }],
    [{ seconds: 1n, nanos: 1_000 }],
    [{ seconds: 5n }],
    [{ nanos: 5 }],
    [{}],
  ])("writes or refuses the timestamp %j as the library does", (timestamp) => {
    const encode = createTextEncoder(TimestampSchema);
    expect(outcomeOf(() => JSON.parse(encode(timestamp)))).toStrictEqual(
      outcomeOf(() => toJson(TimestampSchema, create(TimestampSchema, timestamp))),
    );
  });

  it.each([
    [{ seconds: 3_600n, nanos: 0 }],
    [{ seconds: 1n, nanos: 500_000_000 }],
    [{ seconds: 1n, nanos: 1_000 }],
    [{ seconds: 0n, nanos: 1 }],
    [{ seconds: 0n, nanos: -1 }],
    [{ seconds: -1n, nanos: -500_000_000 }],
    [{ seconds: -1n, nanos: 1 }],
    [{ seconds: 1n, nanos: -1 }],
    [{ seconds: 1n, nanos: 1_000_000_000 }],
    [{ seconds: 315_576_000_000n, nanos: 999_999_999 }],
    [{ seconds: 315_576_000_001n, nanos: 0 }],
    [{ seconds: -315_576_000_001n, nanos: 0 }],
    [{ seconds: 5n }],
    [{ nanos: 5 }],
    [{}],
  ])("writes or refuses the duration %j as the library does", (duration) => {
    const encode = createTextEncoder(DurationSchema);
    expect(outcomeOf(() => JSON.parse(encode(duration)))).toStrictEqual(
      outcomeOf(() => toJson(DurationSchema, create(DurationSchema, duration))),
    );
  });

  it("writes durations in a list as the library does", () => {
    const schema = createSchema(fields.durations, {});
    const encode = createTextEncoder(schema);
    fc.assert(
      fc.property(fc.array(durations), (value) => {
        const expected = toJson(schema, messageOf(schema, { value }), writeOptions);
        expect(JSON.parse(encode({ value }))).toStrictEqual(expected);
      }),
    );
  });
});

describe("decoding Connect JSON", () => {
  const readWithLibrary = (schema: DescMessage, bytes: Uint8Array) =>
    outcomeOf(() =>
      fromJsonString(schema, new TextDecoder("utf-8", { fatal: true }).decode(bytes), {
        ignoreUnknownFields: false,
      }),
    );

  /** Whether the decoder is stricter than the library: trailing text after a duration, days that do not exist. */
  const isStricter = (outcome: unknown) =>
    /: must be a (duration|date and time) such as \S+$/.test(
      (outcome as { error?: string }).error ?? "",
    );

  const isRefusal = (outcome: unknown) => "error" in (outcome as object);

  /** The texts of refusals differ: the decoder checks the JSON itself first. */
  function expectSameAsLibrary(schema: DescMessage, text: string): void {
    const bytes = Buffer.from(text);
    const decode = createConnectJsonDecoder(schema, jsonOptions);
    const outcome = outcomeOf(() => decode(bytes));
    const expected = readWithLibrary(schema, bytes);
    if (isRefusal(expected)) {
      expect(outcome).toHaveProperty("error");
    } else if (!isStricter(outcome)) {
      expect(outcome).toStrictEqual(expected);
    }
  }

  const options: fc.Arbitrary<Partial<JsonWriteOptions>> = fc.record(
    { alwaysEmitImplicit: fc.boolean(), useProtoFieldName: fc.boolean() },
    { requiredKeys: [] },
  );

  it.each(schemas)("reads the same message as the library for %s", (schema) => {
    fc.assert(
      fc.property(messageInits(schema), options, fc.nat(2), (init, options, prettySpaces) => {
        const message = messageOf(schema, init);
        expectSameAsLibrary(schema, toJsonString(schema, message, { ...options, prettySpaces }));
      }),
    );
  });

  it.each(unsupported)("reads %s with the library", (schema, init) => {
    expectSameAsLibrary(schema, toJsonString(schema, messageOf(schema, init)));
  });

  it.each(schemas)("reads or refuses a corrupted %s as the library does", (schema) => {
    const part = fc.constantFrom("", '"', "\\", "{", "}", "[", "]", ",", ":", "null", "1", '"1"');
    const change = fc.record({ at: fc.nat(400), remove: fc.nat(4), insert: part });
    fc.assert(
      fc.property(messageInits(schema), fc.array(change, { maxLength: 2 }), (init, changes) => {
        let text = toJsonString(schema, messageOf(schema, init));
        for (const { at, remove, insert } of changes) {
          const index = at % (text.length + 1);
          text = text.slice(0, index) + insert + text.slice(index + remove);
        }
        expectSameAsLibrary(schema, text);
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ["{}"],
    [""],
    ["null"],
    ["[]"],
    ['"a"'],
    ["\ufeff{}"],
    ['{"key":null,"token":null}'],
    ['{"key":"a","key":"a"}'],
    ['{"key":"a","\\u006bey":"a"}'],
    ['{"token":{"id":"a","id":null}}'],
    ['{"key":"\\u0022","permission":"a","permission":"b"}'],
    ['{"key":"a\\nb"}'],
    ['{"key":"é"}'],
    ['{"key":"\\ud83d"}'],
    ['{"key":7}'],
    ['{"key":"a","sessionId":null}'],
    ['{"key":"a","sessionId":"b"}'],
    ['{"Key":"a"}'],
    ['{"__proto__":{}}'],
    ['{"constructor":1,"toString":2}'],
    ['{"token":[]}'],
    ['{"token":{"container":"a","tokenId":"b"}}'],
    [`{"token":${"[".repeat(30)}${"]".repeat(30)}}`],
  ])("reads or refuses the check %s as the library does", (text) => {
    expectSameAsLibrary(CheckAccessRequestSchema, text);
  });

  it("refuses JSON over the depth limit before it is parsed", () => {
    const text = `{"token":${"[".repeat(200)}${"]".repeat(200)}}`;
    const decode = createConnectJsonDecoder(CheckAccessRequestSchema, jsonOptions);
    expect(() => decode(Buffer.from(text))).toThrow("request: is nested deeper than 32 levels");
  });

  it.each([8, 40])("enforces a depth limit of exactly %d levels", (limit) => {
    const decode = createConnectJsonDecoder(CheckAccessRequestSchema, jsonOptionsWith(limit));
    const nested = (levels: number) =>
      Buffer.from(`{"token":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`);
    expect(() => decode(nested(limit))).toThrow("token: must be an object");
    expect(() => decode(nested(limit + 1))).toThrow(
      `request: is nested deeper than ${limit} levels`,
    );
  });

  it.each([
    ['{"applicationId":"a","size":5}'],
    ['{"application_id":"a","size":"5"}'],
    ['{"applicationId":"a","application_id":"b"}'],
    ['{"applicationId":null,"application_id":"b"}'],
    ['{"size":1.5}'],
    ['{"size":1.0}'],
    ['{"size":-0}'],
    ['{"size":"1e2"}'],
    ['{"size":2147483648}'],
    ['{"size":true}'],
  ])("reads or refuses %s as the library does", (text) => {
    expectSameAsLibrary(ListSessionsRequestSchema, text);
  });

  it.each([
    ['{"expiresAt":"2030-01-31T12:00:00.5+01:00"}'],
    ['{"expiresAt":"2030-02-28T23:59:60Z"}'],
    ['{"expiresAt":"2030-13-01T00:00:00Z"}'],
    ['{"expiresAt":"2030-01-31T12:00:00.1Z"}'],
    ['{"expiresAt":"2030-01-31T12:00:00.123456789Z"}'],
    ['{"expiresAt":"0000-01-01T00:00:00Z"}'],
    ['{"expiresAt":"1969-12-31T23:59:59.999Z"}'],
    ['{"expiresAt":"9999-12-31T23:59:59.999Z"}'],
    ['{"expiresAt":"2030-01-31t12:00:00z"}'],
    ['{"expiresAt":7}'],
    ['{"permissions":null,"rules":[{"priority":1}]}'],
    ['{"permissions":[null]}'],
    ['{"permissions":{}}'],
    ['{"rules":[null]}'],
    ['{"rules":[[]]}'],
  ])("reads or refuses %s as the library does", (text) => {
    expectSameAsLibrary(CreateApplicationRequestSchema, text);
  });

  it.each([
    ["3600s"],
    ["1.5s"],
    ["0.000000001s"],
    ["0s"],
    ["0001s"],
    ["-1s"],
    ["-0.5s"],
    ["-0s"],
    ["1.0000000001s"],
    ["315576000000s"],
    ["315576000001s"],
    ["-315576000001s"],
    [`${"9".repeat(400)}s`],
    ["1.s"],
    [".5s"],
    ["+1s"],
    ["1e3s"],
    ["1 s"],
    ["1S"],
    ["1m"],
    ["1"],
    [""],
    [1],
    [true],
    [null],
    [[]],
    [{}],
    [{ seconds: 1 }],
  ])("reads or refuses the duration %j as the library does", (gracePeriod) => {
    const text = JSON.stringify({ gracePeriod });
    expectSameAsLibrary(RegenerateApplicationKeyRequestSchema, text);
    expectSameAsLibrary(DurationSchema, JSON.stringify(gracePeriod));
    expectSameAsLibrary(
      createSchema(fields.durations, {}),
      JSON.stringify({ value: [gracePeriod] }),
    );
  });

  it("reads or refuses texts similar to durations as the library does", () => {
    const part = fc.constantFrom("0", "1", "9", "12", "000000000", "-", "+", ".", "s", "e", " ");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const text = `${parts.join("")}s`;
        fc.pre(text.indexOf("s") === text.length - 1);
        expectSameAsLibrary(DurationSchema, JSON.stringify(text));
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([["2030-02-30T12:00:00Z"], ["2031-02-29T12:00:00+01:00"], ["2030-02-28T24:00:00Z"]])(
    "refuses %s, which the library reads as a later day",
    (text) => {
      for (const name of ["expiresAt", "expires_at"]) {
        const decode = createConnectJsonDecoder(CreateApplicationRequestSchema, jsonOptions);
        expect(() => decode(Buffer.from(JSON.stringify({ [name]: text })))).toThrow(
          "expires_at: must be a date and time such as",
        );
      }
    },
  );

  it.each(["3600sfoo", "1s ", "1ss", "1s1s"])(
    "refuses the duration %j, with trailing text that the library ignores",
    (text) => {
      const [single, list] = [
        RegenerateApplicationKeyRequestSchema,
        createSchema(fields.durations, {}),
      ];
      for (const [schema, json] of [
        [single, { gracePeriod: text }],
        [single, { grace_period: text }],
        [list, { value: ["1s", text] }],
        [DurationSchema, text],
      ] as const) {
        const decode = createConnectJsonDecoder(schema, jsonOptions);
        expect(() => decode(Buffer.from(JSON.stringify(json)))).toThrow(
          "must be a duration such as 3600s",
        );
      }
    },
  );

  it("refuses a list over its limit, under either field name, before its items are read", () => {
    const decode = createConnectJsonDecoder(UpdateApplicationRequestSchema, jsonOptions);
    const list = `[${"1,".repeat(50)}1]`;
    for (const name of ["allowedOrigins", "allowed_origins"]) {
      expect(() => decode(Buffer.from(`{"${name}":${list}}`))).toThrow(
        "allowed_origins: must contain no more than 50 items",
      );
    }
    expect(() => decode(Buffer.from(`{"rules":[${"{},".repeat(5_000)}{}]}`))).toThrow(
      "contains an array or object with more than 5000 members",
    );
  });

  it("refuses bytes that are not UTF-8", () => {
    const decode = createConnectJsonDecoder(UpdateApplicationRequestSchema, jsonOptions);
    const bytes = Buffer.concat([
      Buffer.from('{"id":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}'),
    ]);
    expect(() => decode(bytes)).toThrow("request: is not valid UTF-8");
  });
});

describe("timestamp conversion", () => {
  it("converts a timestamp as the library does", () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (time) => {
        expect(toTimestamp(time)).toStrictEqual(timestampFromMs(time));
      }),
    );
  });

  it("converts a missing timestamp to undefined", () => {
    expect(toTimestamp(undefined)).toBeUndefined();
  });
});
