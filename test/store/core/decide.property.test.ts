import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { managerPermissions } from "../../../src/contract/grants.js";
import { decide } from "../../../src/store/core/decide.js";
import { type ApplicationRecord, newApplication } from "../../../src/store/port/records.js";
import { anApplication } from "../../contract/store/fixtures.js";

const now = Date.UTC(2030, 0);

const applications = fc
  .record({
    isManager: fc.boolean(),
    disabled: fc.boolean(),
    externalId: fc.constantFrom(undefined, "a", "b"),
    expiresAt: fc.constantFrom(undefined, now + 1, now + 2),
  })
  .map(({ isManager, disabled, ...fields }) => ({
    ...newApplication(anApplication(), now),
    ...fields,
    disabled,
    permissions: isManager ? managerPermissions : ["token:read"],
  }));
const maybe = fc.option(applications, { nil: undefined });

/** Decides to put an application in place of another. */
function replace(before: ApplicationRecord | undefined, put: ApplicationRecord | null | undefined) {
  return decide(
    {
      target: { kind: "application", id: "id" },
      reads: {},
      decide: () => ({ put, result: "result" }),
    },
    () => before as never,
    now,
  );
}

const manages = (record: ApplicationRecord | null | undefined) =>
  record?.disabled === false && record.permissions === managerPermissions;

describe("a decided change of an application", () => {
  it("needs another manager exactly if a manager is deleted or stops to manage", () => {
    fc.assert(
      fc.property(maybe, fc.option(applications), (before, put) => {
        const { needsOtherManager } = replace(before, put);
        expect(needsOtherManager).toBe(manages(before) && !manages(put));
      }),
    );
  });

  it("claims an external id that is new, or that it has until another expiry", () => {
    fc.assert(
      fc.property(maybe, applications, (before, put) => {
        const { claimedExternalId } = replace(before, put);
        const isKept = before?.externalId === put.externalId && before?.expiresAt === put.expiresAt;
        expect(claimedExternalId).toBe(isKept ? undefined : put.externalId);
      }),
    );
  });

  it("claims and needs nothing if the application stays as it is", () => {
    fc.assert(
      fc.property(maybe, (before) => {
        const decided = replace(before, undefined);
        expect(decided).toEqual({ result: "result", needsOtherManager: false });
      }),
    );
  });

  it("gets the records that it declared, by name", () => {
    const [target, other] = [{ id: "target" }, { id: "other" }];
    const records = new Map<string, unknown>([target, other].map((each) => [each.id, each]));
    const seen = decide(
      {
        target: { kind: "application", id: "target" },
        reads: {
          other: { kind: "application", id: "other" },
          missing: { kind: "session", id: "missing" },
          absent: undefined,
        },
        decide: (snapshot) => ({ result: snapshot }),
      },
      ({ id }) => records.get(id) as never,
      now,
    );
    const absent = { missing: undefined, absent: undefined };
    expect(seen.result).toEqual({ id: "target", target, other, ...absent });
  });
});
