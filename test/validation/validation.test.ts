import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { AccessRuleSchema } from "../../gen/latchkey/v1/access_rule_pb.js";
import {
  CreateApplicationRequestSchema,
  ListApplicationsRequestSchema,
  RegenerateApplicationKeyRequestSchema,
  UpdateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { services } from "../../src/contract/methods.js";
import { updateMaskOf } from "../../src/contract/update-mask.js";
import { Problem } from "../../src/errors.js";
import { assertValidMessage, assertValidRequest } from "../../src/validation/validate.js";
import { findFieldViolations } from "../../src/validation/violations.js";
import { times } from "../contract/store/fixtures.js";
import { countTicksUntil } from "../support/event-loop.js";

function violationsOf(request: object): readonly { field: string; message: string }[] {
  const message = create(CreateApplicationRequestSchema, request);
  try {
    assertValidMessage(CreateApplicationRequestSchema, message);
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
  it("accepts a valid request", () => {
    expect(violationsOf(good)).toEqual([]);
  });

  it("refuses a list that is too long without reading its items", () => {
    const rules = Array.from({ length: 1_001 }, () => ({}));
    expect(violationsOf({ ...good, rules })).toEqual([
      {
        field: "rules",
        message: "must contain no more than 1000 items",
        code: "repeated.max_items",
      },
    ]);
  });

  it("refuses a map with too many pairs without reading them", () => {
    const metadata = Object.fromEntries(times(51, (index) => [`k${index}`, "\0"]));
    expect(violationsOf({ ...good, metadata })).toEqual([
      { field: "metadata", message: "must contain no more than 50 pairs", code: "map.max_pairs" },
    ]);
  });

  it("refuses a nested list that is too long", () => {
    const permissions = Array.from({ length: 51 }, (_, at) => `token:read${at}`);
    const rule = { priority: 1, container: "/", transform: "mask" };
    const rules = [
      { ...rule, permissions: ["token:read"] },
      { ...rule, permissions },
    ];
    expect(violationsOf({ ...good, rules })).toEqual([
      {
        field: "rules[1].permissions",
        message: "must contain no more than 50 items",
        code: "repeated.max_items",
      },
    ]);
  });

  it.each([
    ["\u200b", "no visible character"],
    ["a\u202eb", "a direction override"],
    ["a\u0007b", "a control character"],
    ["a\u2028b", "a line separator"],
    ["\ud83d", "a lone surrogate"],
  ])("refuses the name %j with %s", (name) => {
    expect(violationsOf({ ...good, name })).toHaveLength(1);
  });

  it.each(["नमस्ते", "👩‍👩‍👧", "Łódź", "a b"])("accepts the name %s", (name) => {
    expect(violationsOf({ ...good, name })).toEqual([]);
  });
});

describe("a validation message", () => {
  const rule = { priority: 1, container: "/", transform: "mask", permissions: ["token:read"] };
  it.each<[field: string, message: string, request: object]>([
    ["name", "is required", { name: "" }],
    ["name", "must be at most 200 characters", { name: "x".repeat(201) }],
    ["type", "must be one of private, public, management", { type: "" }],
    ["type", "must be one of private, public, management", { type: "none" }],
    [
      "type",
      "did you mean private? It must be one of private, public, management",
      { type: "Privat" },
    ],
    [
      "rules[0].transform",
      "did you mean reveal? It must be one of redact, mask, reveal",
      { rules: [{ ...rule, transform: "revael" }] },
    ],
    ["permissions", "must not contain duplicates", { permissions: ["a:b", "a:b"] }],
    ["session_quota", "must be between 1 and 1000000", { sessionQuota: 0 }],
    ["description", "must be at most 500 characters", { description: "é".repeat(501) }],
    [
      "external_id",
      "must be empty, or one line of text that is not blank, without control characters",
      { externalId: " " },
    ],
    [
      'metadata[""]',
      "key must be one line of text that is not blank, without control characters",
      { metadata: { "": "a" } },
    ],
    [
      `metadata["${"k".repeat(41)}"]`,
      "key must be at most 40 characters",
      { metadata: { ["k".repeat(41)]: "a" } },
    ],
    ['metadata["team"]', "must be at most 500 characters", { metadata: { team: "a".repeat(501) } }],
    ["rules[0].priority", "must be at least 1", { rules: [{ ...rule, priority: 0 }] }],
    ["rules[0].priority", "must be at least 1", { rules: [{ ...rule, priority: -1 }] }],
    ["rules[0].container", "must not be empty", { rules: [{ ...rule, container: "" }] }],
    [
      "rules[0].transform",
      "must be one of redact, mask, reveal",
      { rules: [{ ...rule, transform: "" }] },
    ],
    [
      "rules[0].permissions",
      "must contain at least 1 item",
      { rules: [{ ...rule, permissions: [] }] },
    ],
  ])("describes the violation of %s: %j", (field, message, request) => {
    expect(violationsOf({ ...good, ...request })).toContainEqual(
      expect.objectContaining({ field, message }),
    );
  });

  describe("an update mask", () => {
    const id = "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a";
    const updateViolations = (paths: string[], fields: object = {}) =>
      findFieldViolations(
        UpdateApplicationRequestSchema,
        create(UpdateApplicationRequestSchema, { id, updateMask: { paths }, ...fields }),
      );

    it("may name every field that can change, all of them, none, and keys of metadata", () => {
      const { updatable = [] } = updateMaskOf(UpdateApplicationRequestSchema) ?? {};
      expect(updatable.map(({ name }) => name)).toContain("rules");
      for (const { name } of updatable) {
        expect(updateViolations([name], good)).toEqual([]);
      }
      expect(updateViolations(["*"], good)).toEqual([]);
      expect(updateViolations([])).toEqual([]);
      expect(updateViolations(["metadata.team", "metadata.a.b c"])).toEqual([]);
    });

    it.each(["id", "version", "tenant_id", "modified_at", "last_used_at", "created_by"])(
      "may name %s, which only the service sets",
      (path) => {
        expect(updateViolations([path])).toEqual([]);
      },
    );

    it.each([
      ["nam", 'cannot name "nam": did you mean name?'],
      ["allowedCidrs", 'cannot name "allowedCidrs": did you mean allowed_cidrs?'],
      ["if_match", 'cannot name "if_match", which is not a field of the resource'],
      ["update_mask", 'cannot name "update_mask", which is not a field of the resource'],
      ["rules.priority", /^cannot name "rules.priority": name any of name, permissions, /],
      ["metadatas.team", /^cannot name "metadatas.team": name any of /],
    ])("that names %s is refused, and the path is named", (path, message) => {
      expect(updateViolations([path, "name"], good)).toEqual([
        { field: "update_mask", message: expect.stringMatching(message), code: "field_mask.in" },
      ]);
    });

    it("that has more paths than any update needs is refused without reading them", async () => {
      const validate = async (paths: string[]) =>
        assertValidRequest(
          UpdateApplicationRequestSchema,
          create(UpdateApplicationRequestSchema, { id, updateMask: { paths }, ...good }),
          100,
        );
      await expect(validate(Array(200).fill("name"))).resolves.toBeUndefined();
      await expect(validate(Array(201).fill("name"))).rejects.toMatchObject({
        violations: [
          {
            field: "update_mask",
            message: "must contain no more than 200 items",
            code: "repeated.max_items",
          },
        ],
      });
    });

    it("that is large is refused with a few violations", () => {
      const paths = Array.from({ length: 100_000 }, (_, index) => `x${index}`);
      expect(updateViolations(paths).length).toBeLessThan(20);
    });

    it("makes the name required only if it names it", () => {
      const required = [{ field: "name", message: "is required", code: "required" }];
      const grants = { permissions: ["token:read"] };
      expect(updateViolations(["description"])).toEqual([]);
      expect(updateViolations(["name"])).toEqual(required);
      expect(updateViolations(["*"], grants)).toEqual(required);
      const without = create(UpdateApplicationRequestSchema, { id, ...grants });
      expect(findFieldViolations(UpdateApplicationRequestSchema, without)).toEqual(required);
    });
  });

  it("names the limit for durations and list items", () => {
    const id = "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a";
    const gracePeriod = { seconds: 2_592_001n };
    const regenerate = create(RegenerateApplicationKeyRequestSchema, { id, gracePeriod });
    expect(findFieldViolations(RegenerateApplicationKeyRequestSchema, regenerate)).toEqual([
      {
        field: "grace_period",
        message: "must be at most 2592000s (30 days)",
        code: "duration.lte",
      },
    ]);
    const list = create(ListApplicationsRequestSchema, { id: ["7"] });
    expect(findFieldViolations(ListApplicationsRequestSchema, list)).toEqual([
      { field: "id[0]", message: "must be a valid UUID", code: "string.uuid" },
    ]);
  });

  it("never contains the wording of protovalidate", () => {
    const violations = services.flatMap(({ methods }) =>
      methods.flatMap(({ input }) => findFieldViolations(input, create(input))),
    );
    expect(violations.length).toBeGreaterThan(10);
    for (const { message } of violations) {
      expect(message).not.toMatch(/\bvalue is|in list|item\(s\)|greater than|less than|regex/);
    }
  });
});

describe("validation of a request", () => {
  type Init = MessageInitShape<typeof CreateApplicationRequestSchema>;

  const rule = { priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] };
  const check = async (init: Init) =>
    assertValidRequest(
      CreateApplicationRequestSchema,
      create(CreateApplicationRequestSchema, init),
      10_000,
    );

  /** Returns the problem of a refused request. */
  async function getProblem(init: Init): Promise<Problem | undefined> {
    return check(init).then(
      () => undefined,
      (reason) => reason,
    );
  }

  /** Two UTF-16 units per character, so the compiled check cannot confirm that the length is valid. */
  const undecidedRule = { ...rule, description: "😀".repeat(400) };

  it("reports the violations that protovalidate reports for the whole message", async () => {
    const anyRule = fc.oneof(
      fc.constant(rule),
      fc.constant(undecidedRule),
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
    const byField = (a: { field: string }, b: { field: string }) =>
      a.field < b.field ? -1 : Number(a.field > b.field);
    await fc.assert(
      fc.asyncProperty(anyRequest, async (request) => {
        const init = request as unknown as Init;
        const message = create(CreateApplicationRequestSchema, init);
        const all = findFieldViolations(CreateApplicationRequestSchema, message);
        const reported = (await getProblem(init))?.violations ?? [];
        if (all.length <= 10) {
          expect([...reported].sort(byField)).toEqual([...all].sort(byField));
        } else {
          expect(reported).toHaveLength(10);
          expect(all).toEqual(expect.arrayContaining([...reported]));
        }
      }),
    );
  });

  it("stops after ten violations and reports that there are more", async () => {
    let reads = 0;
    const get = () => {
      reads++;
      return "none";
    };
    const rules = times(1_000, () =>
      Object.defineProperty(create(AccessRuleSchema, rule), "transform", { get }),
    );
    const message = create(CreateApplicationRequestSchema, good as Init);
    Object.assign(message, { rules });
    const result = assertValidRequest(CreateApplicationRequestSchema, message, 10_000);
    const problem = await Promise.resolve(result).catch((reason: Problem) => reason);
    expect(problem).toBeInstanceOf(Problem);
    expect((problem as Problem).violations).toHaveLength(10);
    expect((problem as Problem).rawMessage).toMatch(/; and more$/);
    expect(reads).toBeLessThan(200);
  });

  it("refuses a list that is too long without reading its items", () => {
    const message = create(CreateApplicationRequestSchema, good as Init);
    const unreadable = new Proxy({}, { get: () => expect("an item").toBe("not read") });
    Object.assign(message, { rules: times(1_001, () => unreadable) });
    expect(() => assertValidRequest(CreateApplicationRequestSchema, message, 1_000)).toThrow(
      "rules: must contain no more than 1000 items",
    );
  });

  it("yields to the event loop and to other validations", async () => {
    const large = { ...good, rules: times(500, () => undecidedRule) } as Init;
    const single = await countTicksUntil(check(large));
    expect(single).toBeGreaterThan(50);
    const both = Promise.all([check(large), check(large)]);
    expect(await countTicksUntil(both)).toBeGreaterThan(1.8 * single);
    await both;
  });
});
