import { describe, expect, it } from "@jest/globals";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { expectProblem, send } from "../../support/http/http.js";

const target = useBadInputTarget();

/** The violations in the response to a request, as `field code`. */
async function refusalOf(path: string, body?: unknown) {
  const response = await send(target, path, {
    method: body === undefined ? "GET" : "POST",
    headers: target.json,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { violations = [], detail } = expectProblem(response, 400, "invalid_request");
  return { violations, detail, codes: violations.map(({ field, code }) => `${field} ${code}`) };
}

describe("the violations of a body", () => {
  it("are those of its JSON and of the rules, in one response", async () => {
    const { violations } = await refusalOf("/applications", {
      nmae: "shop",
      type: "secret",
      permissions: [5, "NO"],
      rules: [{ priority: "1", transform: "hide", permissions: ["token:read"] }],
      expires_at: "soon",
    });
    expect(violations).toEqual([
      {
        field: "nmae",
        code: "unknown_field",
        message: "is not a field of this request: did you mean name?",
      },
      { field: "permissions[0]", code: "type.string", message: "must be a string" },
      {
        field: "rules[0].priority",
        code: "type.integer",
        message: "must be a whole number of at most 32 bits",
      },
      {
        field: "expires_at",
        code: "type.timestamp",
        message: "must be a date and time such as 2030-01-31T12:00:00.000Z",
      },
      {
        field: "type",
        code: "string.in",
        message: "must be one of private, public, management",
      },
      {
        field: "permissions[1]",
        code: "string.permission_name",
        message:
          "must be two or three lower-case segments separated by colons, for example token:read",
      },
      {
        field: "rules[0].transform",
        code: "string.in",
        message: "must be one of redact, mask, reveal",
      },
    ]);
  });

  it("do not repeat as a broken rule what cannot be read", async () => {
    const { codes } = await refusalOf("/applications", {
      name: 5,
      type: null,
      permissions: "token:read",
      rules: [],
    });
    expect(codes).toEqual(["name type.string", "permissions type.array", "type required"]);
    expect((await refusalOf("/applications", [])).codes).toEqual(["request type.object"]);
  });

  it("say that a priority of 0 is out of range", async () => {
    const rule = { transform: "mask", container: "/", permissions: ["token:read"] };
    const application = { name: "shop", type: "private" };
    for (const priority of [0, -1, null]) {
      const { violations } = await refusalOf("/applications", {
        ...application,
        rules: [{ ...rule, priority }],
      });
      expect(violations).toEqual([
        { field: "rules[0].priority", code: "int32.gte", message: "must be at least 1" },
      ]);
    }
  });

  it("are at most ten, and repeat only the start of long names", async () => {
    const names = Array.from({ length: 4_000 }, (_, index) => `${"n".repeat(150)}${index}`);
    const body = Object.fromEntries([...names, "x".repeat(100_000)].map((name) => [name, 1]));
    const { violations, detail } = await refusalOf("/applications", body);
    expect(violations).toHaveLength(10);
    expect(detail).toMatch(/; and more$/);
    const { violations: long } = await refusalOf("/applications", { ["x".repeat(100_000)]: 1 });
    expect(long[0]?.field).toBe(`${"x".repeat(200)}…`);
  });
});

it("the violations of a query are those of its parameters and of the rules", async () => {
  const { violations } = await refusalOf("/applications?siez=5&page=0&order=up&x=1");
  expect(violations.map(({ field, code, message }) => [field, code, message])).toEqual([
    ["siez", "unknown_parameter", "is not a parameter of this path: did you mean size?"],
    ["x", "unknown_parameter", "is not a parameter of this path"],
    ["page", "int32.gte", expect.stringMatching(/at least 1/)],
    ["order", "string.in", expect.stringMatching(/^must be one of/)],
  ]);
});

it("the violations of a parameter that may be repeated have an index if it is", async () => {
  const { violations } = await refusalOf("/events?kind=session.revoked");
  expect(violations).toEqual([
    {
      field: "kind",
      code: "string.event_kind",
      message: expect.stringMatching(/^did you mean session\.deleted\? It must be one of /),
    },
  ]);
  const { codes } = await refusalOf("/events?kind=access.denied&kind=shop&siez=5");
  expect(codes).toEqual(["siez unknown_parameter", "kind[1] string.event_kind"]);
});
