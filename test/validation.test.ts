import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { CreateApplicationRequestSchema } from "../gen/latchkey/v1/application_service_pb.js";
import { Problem } from "../src/errors.js";
import { checkMessage } from "../src/validation.js";

function complaintsOf(request: object): readonly { field: string; message: string }[] {
  const message = create(CreateApplicationRequestSchema, request);
  try {
    checkMessage(CreateApplicationRequestSchema, message);
  } catch (error) {
    if (error instanceof Problem) {
      return error.violations;
    }
    throw error;
  }
  return [];
}

const good = { name: "a", type: "private", permissions: ["token:read"] };

describe("validation", () => {
  it("lets pass what keeps the rules", () => {
    expect(complaintsOf(good)).toEqual([]);
  });

  it("refuses a list that is too long without a look at its items", () => {
    const rules = Array.from({ length: 1_001 }, () => ({}));
    expect(complaintsOf({ ...good, rules })).toEqual([
      { field: "rules", message: "must contain no more than 1000 items" },
    ]);
  });

  it("refuses a list within a list that is too long", () => {
    const permissions = Array.from({ length: 51 }, (_, at) => `token:read${at}`);
    const rule = { priority: 1, container: "/", transform: "mask" };
    const rules = [
      { ...rule, permissions: ["token:read"] },
      { ...rule, permissions },
    ];
    expect(complaintsOf({ ...good, rules })).toEqual([
      { field: "rules[1].permissions", message: "must contain no more than 50 items" },
    ]);
  });

  it.each([
    ["\u200b", "nothing that can be seen"],
    ["a\u202eb", "a change of direction"],
    ["a\u0007b", "a control character"],
    ["a\u2028b", "a second line"],
    ["\ud83d", "half of a character"],
  ])("refuses the name %j, which has %s", (name) => {
    expect(complaintsOf({ ...good, name })).toHaveLength(1);
  });

  it.each(["नमस्ते", "👩‍👩‍👧", "Łódź", "a b"])("takes the name %s", (name) => {
    expect(complaintsOf({ ...good, name })).toEqual([]);
  });
});
