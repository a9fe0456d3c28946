import fc from "fast-check";
import { seed } from "./seeded.js";

/** Names that mean something to JavaScript, to a database or to a parser of queries. */
export const hostileNames = [
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

/** JSON, as text: what databases, parsers and calendars stumble over. */
const hostileJson = [
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
  ...moments().map((text) => JSON.stringify(text)),
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

function moments(): string[] {
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

/** Changes that people do not see, or take for the same. */
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

/** A text that looks like another, and is none of it. */
export function lookAlike(text: string): fc.Arbitrary<string> {
  return fc
    .constantFrom(...disguises)
    .map((disguise) => disguise(text))
    .filter((disguised) => disguised !== text);
}

/** Made once, since it is dear to make. */
const usualJson = fc.sample(fc.json({ maxDepth: 3 }), { numRuns: 500, seed });
const odd = fc.sample(fc.string({ unit: "binary", maxLength: 20 }), { numRuns: 500, seed });

/** JSON as text, not all of it valid, to stand where a value was expected. */
export function anyJson(usual: string): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...hostileJson) },
    { weight: 2, arbitrary: lookAlike(usual).map((text) => JSON.stringify(text)) },
    { weight: 2, arbitrary: fc.constantFrom(...usualJson, ...odd) },
  );
}
