import fc from "fast-check";
import { seed } from "./harness.js";

/** Mostly the valid value, so that an input usually has few invalid parts. */
export function mostlyValid<T>(valid: T, invalid: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(valid) }, { weight: 2, arbitrary: invalid });
}

/** Names that are special in JavaScript, databases or query parsers. */
export const maliciousNames = [
  "__proto__",
  "constructor",
  "prototype",
  "constructor.prototype",
  "__proto__.polluted",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "$ne",
  "$where",
  "$set",
  "a.b",
  "",
  "tenant_id",
  "tenantId",
  "created_by",
  "\u0000",
  "\ud800",
  "na\u200bme",
  "ｎａｍｅ",
] as const;

/** JSON texts that are special to databases, parsers and date libraries. */
const maliciousJson = [
  '{"$ne":null}',
  '{"$gt":""}',
  '{"$where":"sleep(5000)"}',
  '{"$regex":"^(a+)+$"}',
  '{"__proto__":{"polluted":true,"permissions":["application:create"]}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"a":1,"a":2}',
  "[]",
  "{}",
  "null",
  "true",
  '""',
  ...["1e309", "-1e309", "-0", "0", "1.0", "1e0", "01", "+1", "0x1", ".5", "1.", "NaN", "-"],
  ...["9007199254740993", "2147483647", "2147483648", "-2147483649", "1e-400", "4294967297"],
  ...['"1"', '"0"', '"-0"', '"1e3"', '"Infinity"', '" 1"', "Infinity"],
  ...timestamps().map((text) => JSON.stringify(text)),
  ...durations().map((text) => JSON.stringify(text)),
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"\\u0000"',
  '"\u2028"',
  `"${"a".repeat(5_000)}"`,
  `[${"1,".repeat(2_000)}1]`,
  `[${'"token:read",'.repeat(300)}"token:read"]`,
  ...[30, 31, 32, 33, 100, 3_000].flatMap((depth) => [
    `${"[".repeat(depth)}${"]".repeat(depth)}`,
    `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`,
  ]),
];

function timestamps(): string[] {
  return [
    "2030-02-30T00:00:00Z",
    "2031-02-29T00:00:00Z",
    "2030-04-31T00:00:00Z",
    "2030-13-01T00:00:00Z",
    "2030-00-00T00:00:00Z",
    "2030-01-01T24:00:00Z",
    "2030-01-01T23:59:60Z",
    "2030-01-01T23:60:00Z",
    "10000-01-01T00:00:00Z",
    "+010000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-01:00",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "-0001-01-01T00:00:00Z",
    "2030-01-01T00:00:00+24:00",
    "2030-01-01T00:00:00+99:99",
    "2030-01-01T00:00:00-00:00",
    "2030-01-01t00:00:00z",
    "2030-01-01 00:00:00Z",
    "2030-01-01T00:00:00",
    "2030-01-01T00:00:00.Z",
    "2030-01-01T00:00:00.0000000001Z",
    "2030-01-01T00:00:00Zfoo",
    "２０３０-01-01T00:00:00Z",
    "2100-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
  ];
}

function durations(): string[] {
  return [
    ...["3600s", "3600sfoo", "3600", "1h", "1e3s", "-1s", "-0s", "+1s", "0x10s", ".5s", "1.s"],
    ...["0.0000000001s", "315576000001s", `${"9".repeat(400)}s`, "３６００s", "3600S", " 3600s"],
  ];
}

/** Changes that are hard to see, or that normalization may undo. */
const disguises: readonly ((text: string) => string)[] = [
  (text) => text.toUpperCase(),
  (text) => text.replaceAll("i", "ı"),
  (text) => text.replaceAll("i", "İ"),
  (text) => text.replaceAll("a", "а"),
  (text) => text.replaceAll("e", "é".normalize("NFD")),
  (text) => text.replaceAll("s", "ſ"),
  (text) => text.replaceAll("k", "\u212a"),
  (text) =>
    text.replaceAll(/[!-~]/g, (it) => String.fromCharCode(it.charCodeAt(0) + 0xff00 - 0x20)),
  (text) => text.replaceAll(/\d/g, (it) => String.fromCharCode(it.charCodeAt(0) + 0x0660 - 0x30)),
  (text) => text.split("").join("\u200b"),
  (text) => `\u202e${text}`,
  (text) => `${text}\ufeff`,
  (text) => `${text}\u0000`,
  (text) => `${text}\u00ad`,
  (text) => `${text} `,
  (text) => `\u00a0${text}`,
  (text) => `${text}.`,
  (text) => `${text}\r\nsvc-api-key: x`,
  (text) => `${text}\ud83d`,
  (text) => text.slice(0, -1),
  (text) => text + text,
];

/** A different text that looks similar. */
export function lookalike(text: string): fc.Arbitrary<string> {
  return fc
    .constantFrom(...disguises)
    .map((disguise) => disguise(text))
    .filter((disguised) => disguised !== text);
}

/** Sampled once, since generation is slow. */
const randomJson = fc.sample(fc.json({ maxDepth: 3 }), { numRuns: 500, seed });
const randomText = fc.sample(fc.string({ unit: "binary", maxLength: 20 }), { numRuns: 500, seed });

/** JSON texts, some of them invalid, in place of a value. */
export function anyJson(valid: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...maliciousJson) },
    { weight: 2, arbitrary: lookalike(valid).map((text) => JSON.stringify(text)) },
    { weight: 2, arbitrary: fc.constantFrom(...randomJson, ...randomText) },
  );
}
