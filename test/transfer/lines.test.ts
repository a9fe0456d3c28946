import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import { Problem } from "../../src/errors.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import {
  applicationLine,
  endLine,
  eventLine,
  headerLine,
  sessionLine,
} from "../../src/transfer/export.js";
import {
  parseHeaderLine,
  parseRecordLine,
  type SplitLine,
  splitLines,
} from "../../src/transfer/format.js";
import { createReader } from "../../src/transfer/line-reader.js";
import { progressBar, progressLine } from "../../src/transfer/progress.js";
import { times } from "../contract/store/fixtures.js";
import { anyApplication, anyEvent, anySession } from "./record-generators.js";

const anyLine = fc.oneof(
  anyApplication.map(applicationLine),
  anySession.map(sessionLine),
  anyEvent.map(eventLine),
);

const read = (line: string) => parseRecordLine(Buffer.from(line), 65_536);

/** Returns the error of a line, or an empty string. */
function getError(line: unknown): string {
  try {
    read(typeof line === "string" ? line : JSON.stringify(line));
    return "";
  } catch (error) {
    if (error instanceof Problem) {
      return error.rawMessage;
    }
    throw error;
  }
}

/** A valid line of an application. */
function application(fields: Record<string, unknown> = {}) {
  return {
    application: {
      id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
      tenant_id: "0198c8a0-11d2-7ab4-8c3f-5e7a9b1d3f60",
      name: "Checkout",
      type: "private",
      permissions: ["token:read"],
      keys: [
        {
          id: "0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d",
          hash: Buffer.alloc(32, 7).toString("base64"),
          created_at: "2026-01-31T12:00:00.000Z",
        },
      ],
      created_at: "2026-01-31T12:00:00.000Z",
      ...fields,
    },
  };
}

function session(fields: Record<string, unknown> = {}) {
  const hash = Buffer.alloc(32, 7).toString("base64");
  return {
    session: {
      id: "0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f",
      tenant_id: "0198c8a0-11d2-7ab4-8c3f-5e7a9b1d3f60",
      application_id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
      key_hash: hash,
      nonce_hash: hash,
      created_at: "2026-01-31T12:00:00.000Z",
      expires_at: "2026-01-31T12:03:00.000Z",
      ...fields,
    },
  };
}

describe("a line", () => {
  it("has all fields of any application", () => {
    fc.assert(
      fc.property(anyApplication, (record) => {
        expect(read(applicationLine(record))).toEqual({ kind: "application", record });
      }),
    );
  });

  it("has all fields of a session, authorized or not", () => {
    fc.assert(
      fc.property(anySession, (record) => {
        expect(read(sessionLine(record))).toEqual({ kind: "session", record });
      }),
    );
  });

  it("has all fields of an event", () => {
    fc.assert(
      fc.property(anyEvent, (record) => {
        expect(read(eventLine(record))).toEqual({ kind: "event", record });
      }),
    );
  });

  it("is a single line, whatever texts it contains", () => {
    fc.assert(
      fc.property(anyLine, (line) => {
        expect(line.indexOf("\n")).toBe(line.length - 1);
      }),
    );
  });

  it("has the names of the proto, dates, base64 and lower-case ids", () => {
    const given = application({
      disabled: true,
      created_by: "0198C8A2-7F3E-7C1D-9B5A-2F4E6D8C0B1A",
    });
    const { record } = read(JSON.stringify(given)) as { record: ApplicationFields };
    const createdAt = Date.UTC(2026, 0, 31, 12);
    expect(record).toMatchObject({
      tenantId: given.application.tenant_id,
      disabled: true,
      keys: [{ hash: Buffer.alloc(32, 7), createdAt }],
      createdBy: given.application.id,
      createdAt,
    });
    expect(JSON.parse(applicationLine(record)).application).toEqual({
      ...given.application,
      created_by: given.application.id,
      rules: [],
      allowed_origins: [],
      allowed_cidrs: [],
      session_epoch: 0,
      authorization_epoch: 0,
      metadata: {},
    });
  });

  it("may omit fields with defaults", () => {
    expect(read(JSON.stringify(application()))).toMatchObject({
      record: { disabled: false, sessionEpoch: 0, rules: [], allowedOrigins: [], allowedCidrs: [] },
    });
  });

  it("has the record counts if it is the last one", () => {
    const counts = { applications: 3, sessions: 2, events: 1 };
    expect(read(endLine(counts))).toEqual({ kind: "end", record: counts });
  });

  it("describes the source if it is the first one", () => {
    const header = {
      exportedAt: 1_800_000_000_000,
      store: "embedded",
      source: "a",
      pepperChecks: ["b"],
    };
    expect(parseHeaderLine(Buffer.from(headerLine(header)))).toEqual({
      latchkeyExport: 1,
      ...header,
    });
    expect(parseHeaderLine(Buffer.from('{"latchkey_export":1}'))).toEqual({
      latchkeyExport: 1,
      pepperChecks: [],
    });
  });
});

describe("an invalid line", () => {
  it("is refused with its violations, and never with another error", () => {
    const anything = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(anyLine, fc.nat(), anything, (line, which, value) => {
        const invalid = JSON.stringify(replaceNested(JSON.parse(line), which, value));
        try {
          read(invalid);
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
        }
      }),
    );
  });

  it("is refused if a required field is missing", () => {
    const fields = ["id", "tenant_id", "name", "type", "keys", "created_at"];
    for (const field of fields) {
      const line = application({ [field]: undefined });
      expect(getError(line)).toBe(`application.${field}: is required`);
    }
  });

  it.each([
    ["an unknown field", { nmae: "x" }, "application.nmae: is unknown"],
    ["an id that is not a UUID", { id: "42" }, "application.id: must be a valid UUID"],
    ["a name that is not a string", { name: 1 }, "application.name: must be a string"],
    [
      "an unknown type",
      { type: "secret" },
      "application.type: must be one of private, public, management",
    ],
    [
      "a day that does not exist",
      { created_at: "2026-02-30T12:00:00.000Z" },
      "application.created_at: must be a date",
    ],
    [
      "a time before 1970",
      { created_at: "1969-12-31T23:59:59.999Z" },
      "application.created_at: must be a date",
    ],
    ["a fraction", { session_epoch: 1.5 }, "application.session_epoch: must be a whole number"],
    ["a null", { expires_at: null }, "application.expires_at: must be a date"],
    [
      "a string instead of a list",
      { permissions: "token:read" },
      "application.permissions: must be an array",
    ],
    ["a name of two lines", { name: "a\nb" }, "application.name: must be one line"],
    [
      "an invalid permission",
      { permissions: ["READ"] },
      "application.permissions[0]: must be two or three",
    ],
    ["no grants", { permissions: [] }, "application: permissions and rules are both empty"],
    [
      "a rule without a container",
      { rules: [{ priority: 1, transform: "mask", permissions: ["token:read"] }] },
      "application.rules[0].container: is required",
    ],
    ["an invalid network", { allowed_cidrs: ["10.0.0.0/99"] }, "application.allowed_cidrs[0]:"],
    ["an empty external id", { external_id: "" }, "application.external_id: must not be empty"],
    [
      "an external id of two lines",
      { external_id: "a\nb" },
      "application.external_id: must be empty, or one line",
    ],
    ["a list as metadata", { metadata: [] }, "application.metadata: must be an object"],
    ["a number in metadata", { metadata: { a: 1 } }, 'application.metadata["a"]: must be a string'],
    [
      "a lone surrogate in metadata",
      { metadata: { "\ud800": "a" } },
      'application.metadata["\\ud800"]: must have a valid key',
    ],
    [
      "a long key in metadata",
      { metadata: { ["k".repeat(41)]: "a" } },
      `application.metadata["${"k".repeat(41)}"]: key must be at most 40 characters`,
    ],
    ["a lone surrogate", { name: "\ud800" }, "application.name: must be a string"],
  ])("is refused for %s", (_, fields, error) => {
    expect(getError(application(fields))).toContain(error);
  });

  it("is parsed up to twenty violations", () => {
    const many = [{ permissions: times(1_000, () => 1) }, { keys: times(1_000, () => ({})) }];
    for (const fields of many) {
      expect(getError(application(fields))).toMatch(/; and more$/);
    }
  });

  it.each([
    ["31 bytes", Buffer.alloc(31).toString("base64")],
    ["33 bytes", Buffer.alloc(33).toString("base64")],
    ["a key", `lk_prv_${"a".repeat(61)}`],
    ["hexadecimal digits", "0".repeat(64)],
    ["base64 for URLs", Buffer.alloc(32, 255).toString("base64url")],
    ["base64 with a space", ` ${Buffer.alloc(32).toString("base64")}`],
    ["base64 with excess bits", `${"A".repeat(42)}B=`],
  ])("is refused for a hash of %s, without echoing it", (_, hash) => {
    const [key] = application().application.keys;
    const error = getError(application({ keys: [{ ...key, hash }] }));
    expect(error).toMatch(/^application\.keys\[0\]\.hash: must be (32 bytes in )?base64$/);
  });

  it("is refused for a session with an incomplete authorization", () => {
    const authorized_at = "2026-01-31T12:00:00.000Z";
    expect(getError(session())).toBe("");
    expect(getError(session({ authorized_at }))).toContain(
      "session.authorized_by: must be set together with",
    );
    expect(getError(session({ permissions: ["token:read"] }))).toContain("session.authorized_at");
  });

  it("is refused if it is not an object with exactly one member", () => {
    expect(getError("[]")).toContain("must be an object");
    expect(getError('{"application":')).toContain("is not valid JSON");
    expect(getError("{}")).toContain("must have one member");
    expect(getError({ ...application(), ...session() })).toContain("must have one member");
    expect(getError('{"end":{},"end":{}}')).toContain("is duplicated");
  });
});

describe("a map", () => {
  const readInfo = createReader(ErrorInfoSchema);

  it("is read as it is", () => {
    const metadata = JSON.parse('{"b":"1","a":"","__proto__":"2"}');
    expect(readInfo({ metadata })).toEqual({ reason: "", domain: "", metadata });
  });

  it.each([
    ["another value", { a: 1 }, 'metadata["a"]: must be a string'],
    ["a lone surrogate", { "\ud800": "" }, "must have a valid key"],
    ["a list", [], "metadata: must be an object"],
  ])("is refused for %s", (_, metadata, error) => {
    expect(() => readInfo({ metadata })).toThrow(error);
  });
});

/** Replaces one of the nested values. */
function replaceNested(value: unknown, which: number, other: unknown): unknown {
  let left = which % 25;
  const visit = (part: unknown): unknown => {
    if (left-- === 0) {
      return other;
    }
    if (Array.isArray(part)) {
      return part.map(visit);
    }
    return typeof part === "object" && part !== null
      ? Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, visit(inner)]))
      : part;
  };
  return visit(value);
}

async function split(chunks: readonly Buffer[], maxLength?: number): Promise<SplitLine[]> {
  async function* read() {
    yield* chunks;
  }
  const lines: SplitLine[] = [];
  for await (const line of splitLines(read(), maxLength)) {
    lines.push(line);
  }
  return lines;
}

/** Splits bytes into parts of these lengths, repeatedly. */
function cut(text: Buffer, lengths: readonly number[]): Buffer[] {
  const parts: Buffer[] = [];
  for (let start = 0, index = 0; start < text.length; index++) {
    const length = lengths[index % lengths.length] ?? 1;
    parts.push(text.subarray(start, start + length));
    start += length;
  }
  return parts;
}

describe("splitting a file into lines", () => {
  it("gives the same lines for any chunks", () =>
    fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom("a", "é", "\n"), maxLength: 60 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (text, lengths) => {
          const bytes = Buffer.from(text);
          const lines = await split(cut(bytes, lengths));
          const expected = text.split("\n");
          const rest = expected.pop() ?? "";
          expect(lines.map((line) => line.bytes.toString())).toEqual(
            rest === "" ? expected : [...expected, rest],
          );
          expect(lines.map(({ number }) => number)).toEqual(lines.map((_, at) => at + 1));
          expect(lines.filter(({ isComplete }) => isComplete)).toHaveLength(expected.length);
          expect(lines.at(-1)?.end ?? 0).toBe(bytes.length);
          for (const { end, isComplete } of lines) {
            expect(isComplete ? bytes[end - 1] : end).toBe(isComplete ? 0x0a : bytes.length);
          }
        },
      ),
    ));

  it("truncates a line that is too long, and continues after it", async () => {
    const text = Buffer.from(`${"a".repeat(50)}\nb\n`);
    const [long, next] = await split(cut(text, [7]), 20);
    expect(long).toMatchObject({ number: 1, isTooLong: true, end: 51 });
    expect(long?.bytes.length).toBeLessThanOrEqual(20);
    expect(next).toMatchObject({ number: 2, isTooLong: false, end: 53 });
    expect(next?.bytes.toString()).toBe("b");
  });
});

const megabyte = 1024 * 1024;

describe("the progress of an import or export", () => {
  it("shows records, bytes and records per second", () => {
    const progress = { records: 12_345, bytes: 7.5 * megabyte, elapsed: 5_000 };
    expect(progressLine("exported", progress)).toBe("exported 12,345 records, 7.5 MB, 2,469/s");
    expect(progressBar(progress)).toBe("");
  });

  it("shows percent and remaining time if the total is known", () => {
    const progress = { records: 500, bytes: megabyte, totalBytes: 4 * megabyte, elapsed: 30_000 };
    expect(progressLine("imported", progress)).toBe(
      "25% imported 500 records, 1.0 MB, 17/s, 1:30 left",
    );
    expect(progressBar(progress)).toBe("[#####               ] ");
    const long = { ...progress, elapsed: 3_600_000 };
    expect(progressLine("imported", long)).toContain("3:00:00 left");
  });

  it("is shown at the start and at the end", () => {
    const nothing = { records: 0, bytes: 0, totalBytes: megabyte, elapsed: 0 };
    expect(progressLine("imported", nothing)).toBe("0% imported 0 records, 0 kB, 0/s");
    const all = { records: 1, bytes: 2 * megabyte, totalBytes: megabyte, elapsed: 1_000 };
    expect(progressLine("imported", all)).toContain("100% imported");
    expect(progressBar(all)).toBe("[####################] ");
  });
});
