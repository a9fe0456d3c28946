import type { DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  ApplicationRecordSchema,
  EventRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import {
  mergeApplication,
  mergeSession,
  outcomeOfApplication,
  outcomeOfEvent,
  outcomeOfSession,
} from "../../../src/store/port/import.js";
import type { ImportOutcome } from "../../../src/store/port/transfer.js";
import { anyApplication, anyEvent, anySession } from "../../transfer/record-generators.js";

const context = { replace: false, now: -1, hasEvent: () => false };
const stored = <R extends object>(record: R) => ({ ...record, version: 1 });

const kinds = [
  {
    kind: "an application",
    schema: ApplicationRecordSchema,
    records: anyApplication,
    outcomeOf: (one, other) => outcomeOfApplication(stored(one), other, context),
  },
  {
    kind: "a session",
    schema: SessionRecordSchema,
    records: anySession,
    outcomeOf: (one, other) => outcomeOfSession(stored(one), other, context),
  },
  {
    kind: "an event",
    schema: EventRecordSchema,
    records: anyEvent,
    outcomeOf: outcomeOfEvent,
  },
] as readonly {
  kind: string;
  schema: DescMessage;
  records: fc.Arbitrary<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own type of record.
  outcomeOf: (one: any, other: any) => ImportOutcome;
}[];

/** The same content in other objects: fields in another order, another class of bytes, and undefined. */
function copy(value: unknown): unknown {
  if (value instanceof Uint8Array) {
    return new Uint8Array(value);
  }
  if (Array.isArray(value)) {
    return value.map(copy);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const fields = Object.entries(value).map(([name, inner]) => [
    name,
    name === "metadata" ? Object.fromEntries(Object.entries(inner).reverse()) : copy(inner),
  ]);
  return { unknown: undefined, ...Object.fromEntries(fields.reverse()) };
}

describe.each(kinds)("an import of $kind", ({ kind, schema, records, outcomeOf }) => {
  it("finds equal records the same, however they are represented", () => {
    fc.assert(
      fc.property(records, (record) => {
        expect(outcomeOf(record, copy(record))).toBe("same");
      }),
    );
  });

  const fields = schema.fields.map(({ localName }) => localName);
  it.each(fields)("finds records with another %s different, except for the last use", (name) => {
    const isUse = kind === "an application" && name === "lastUsedAt";
    const values = fc
      .tuple(records, records)
      .filter(([one, other]) => fc.stringify(one[name]) !== fc.stringify(other[name]));
    fc.assert(
      fc.property(values, ([one, other]) => {
        const changed = { ...one, [name]: other[name] };
        expect(outcomeOf(one, changed)).toBe(isUse ? "same" : "differs");
      }),
      { numRuns: 10 },
    );
  });
});

describe("an added record", () => {
  it("has all fields of the file", () => {
    fc.assert(
      fc.property(anyApplication, anySession, (application, session) => {
        expect(mergeApplication(undefined, application)).toEqual(application);
        expect(mergeSession(undefined, session)).toEqual(session);
      }),
    );
  });
});

/** The fields that may keep the stored value when a record is replaced. */
const kept = {
  application: [
    ...(["keys", "disabled", "sessionEpoch", "authorizationEpoch"] as const),
    ...(["permissions", "rules", "allowedOrigins", "allowedCidrs"] as const),
    ...(["modifiedBy", "modifiedAt", "expiresAt"] as const),
  ],
  session: [
    ...(["epoch", "permissions", "rules", "expiresAt"] as const),
    ...(["authorizedAt", "authorizedBy", "authorizationEpoch", "networkHash"] as const),
  ],
};

describe("a replaced record", () => {
  const omit = (record: object, names: readonly string[]) =>
    Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));

  it("has all fields of the file, except those that decide about access", () => {
    fc.assert(
      fc.property(anyApplication, anyApplication, (one, other) => {
        const merged = mergeApplication(stored(one), other);
        expect(omit(merged, kept.application)).toEqual(omit(other, kept.application));
      }),
    );
    fc.assert(
      fc.property(anySession, anySession, (one, other) => {
        const merged = mergeSession(stored(one), other);
        expect(omit(merged, kept.session)).toEqual(omit(other, kept.session));
      }),
    );
  });
});
