import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import { CreateApplicationRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { Problem } from "../../src/errors.js";
import { checkMessage, checkRequest } from "../../src/validation/validate.js";
import { violationsIn } from "../../src/validation/violations.js";
import { times } from "../contract/store/fixtures.js";
import { turnsUntil } from "../support/turns-until.js";

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

describe("validation of a request", () => {
  type Init = MessageInitShape<typeof CreateApplicationRequestSchema>;

  const rule = { priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] };
  const check = async (init: Init) =>
    checkRequest(
      CreateApplicationRequestSchema,
      create(CreateApplicationRequestSchema, init),
      10_000,
    );

  /** What is told of a request that is refused. */
  async function refusalOf(init: Init): Promise<Problem | undefined> {
    return check(init).then(
      () => undefined,
      (reason) => reason,
    );
  }

  /** Characters that are two units each: only the validator knows that they are not too many. */
  const unsure = { ...rule, description: "😀".repeat(400) };

  it("tells what the validator tells of the whole, whichever items of a list are bad", async () => {
    const anyRule = fc.oneof(
      fc.constant(rule),
      fc.constant(unsure),
      fc.record({
        priority: fc.constantFrom(0, 1),
        container: fc.constantFrom("/pci/", "a\nb"),
        transform: fc.constantFrom("mask", "none"),
        permissions: fc.constantFrom(["token:read"], ["TOKEN"], []),
        conditions: fc.constantFrom([], [{ attribute: "id", operator: "equals", value: "a" }]),
      }),
    );
    const anyRequest = fc.record({
      name: fc.constantFrom("shop", ""),
      type: fc.constantFrom("private", "none"),
      permissions: fc.constantFrom([], ["token:read"]),
      rules: fc.array(anyRule, { maxLength: 20 }),
    });
    const byField = (one: { field: string }, other: { field: string }) =>
      one.field < other.field ? -1 : Number(one.field > other.field);
    await fc.assert(
      fc.asyncProperty(anyRequest, async (request) => {
        const init = request as unknown as Init;
        const message = create(CreateApplicationRequestSchema, init);
        const all = violationsIn(CreateApplicationRequestSchema, message);
        const told = (await refusalOf(init))?.violations ?? [];
        if (all.length <= 10) {
          expect([...told].sort(byField)).toEqual([...all].sort(byField));
        } else {
          expect(told).toHaveLength(10);
          expect(all).toEqual(expect.arrayContaining([...told]));
        }
      }),
    );
  });

  it("stops at the first ten violations, and says that there are more", async () => {
    let looked = 0;
    const get = () => {
      looked++;
      return "none";
    };
    const rules = times(1_000, () =>
      Object.defineProperty(create(AccessRuleSchema, rule), "transform", { get }),
    );
    const message = create(CreateApplicationRequestSchema, good as Init);
    Object.assign(message, { rules });
    const refused = checkRequest(CreateApplicationRequestSchema, message, 10_000);
    const refusal = await Promise.resolve(refused).catch((reason: Problem) => reason);
    expect(refusal).toBeInstanceOf(Problem);
    expect((refusal as Problem).violations).toHaveLength(10);
    expect((refusal as Problem).rawMessage).toMatch(/; and more$/);
    expect(looked).toBeLessThan(200);
  });

  it("refuses a list that is too long without a look at its items", () => {
    const message = create(CreateApplicationRequestSchema, good as Init);
    const untouchable = new Proxy({}, { get: () => expect("an item").toBe("not looked at") });
    Object.assign(message, { rules: times(1_001, () => untouchable) });
    expect(() => checkRequest(CreateApplicationRequestSchema, message, 1_000)).toThrow(
      "rules: must contain no more than 1000 items",
    );
  });

  it("lets others have turns of the event loop, and shares them with others like it", async () => {
    const large = { ...good, rules: times(500, () => unsure) } as Init;
    const one = await turnsUntil(check(large));
    expect(one).toBeGreaterThan(50);
    const both = Promise.all([check(large), check(large)]);
    expect(await turnsUntil(both)).toBeGreaterThan(1.8 * one);
    await both;
  });
});
