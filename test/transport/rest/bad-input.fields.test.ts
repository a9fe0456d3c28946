import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { expectProblem, type HttpResponse, send } from "../../support/http/http.js";
import { repetitions } from "../../support/jest/suite.js";
import { listJsonPaths, type Path, replaceAtPath } from "../../support/json-paths.js";

const target = useBadInputTarget();

const grants = { permissions: ["token:read"] };
const applicationRule = {
  description: "cards",
  priority: 1,
  container: "/pci/",
  transform: "mask",
  ...grants,
};
const sessionRule = {
  priority: 1,
  conditions: [{ attribute: "container", operator: "equals", value: "/pci/" }],
  transform: "reveal",
  ...grants,
};

/** The requests with a body, each with a valid body that has every field. */
const operations = {
  create: {
    method: "POST",
    path: () => "/applications",
    key: () => target.root.key,
    body: {
      name: "a",
      type: "private",
      ...grants,
      rules: [applicationRule],
      expires_at: "2100-01-01T00:00:00Z",
    },
  },
  update: {
    method: "PUT",
    path: () => `/applications/${target.privateId}`,
    key: () => target.root.key,
    body: { name: "a", ...grants, rules: [applicationRule] },
  },
  regenerate: {
    method: "POST",
    path: () => `/applications/${target.privateId}/regenerate`,
    key: () => target.root.key,
    body: { grace_period: "3600s" },
  },
  authorize: {
    method: "POST",
    path: () => "/sessions/authorize",
    key: () => target.privateKey,
    body: {
      nonce: "nonce",
      ...grants,
      rules: [sessionRule],
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    },
  },
} as const;

type Operation = (typeof operations)[keyof typeof operations];
const namedOperations = Object.entries(operations) as [string, Operation][];

function call({ method, path, key }: Operation, body: unknown): Promise<HttpResponse> {
  const headers = { "svc-api-key": key(), "content-type": "application/json" };
  return send(target, path(), { method, headers, body: JSON.stringify(body) });
}

/** Returns a copy of a JSON value with one more member in one of its objects. */
function withMember(value: unknown, path: Path, name: string, member: unknown): unknown {
  const object = path.reduce<unknown>((inner, at) => (inner as never)[at], value);
  const copy = structuredClone(object) as object;
  Object.defineProperty(copy, name, { value: member, enumerable: true });
  return replaceAtPath(value, path, copy);
}

const hostileValues = [
  { $gt: "" },
  { $ne: null },
  { $where: "sleep(1000)" },
  JSON.parse('{"__proto__":{"polluted":true}}'),
  { constructor: { prototype: { polluted: true } } },
  [{ $gt: "" }],
  [["a"]],
  true,
  1.5,
  2 ** 31,
  -0.5,
];

describe.each(namedOperations)("every field of %s", (_name, operation) => {
  const places = listJsonPaths(operation.body);

  it("refuses operators, prototype names and values of the wrong type", async () => {
    for (const place of places) {
      for (const value of hostileValues) {
        const body = replaceAtPath(operation.body, place, value);
        expectProblem(await call(operation, body), 400, "invalid_request");
      }
    }
  });

  it.each(["$gt", "$set", "__proto__", "constructor", "toString", "hasOwnProperty", "", "a.b"])(
    "refuses an unknown member %j and names it",
    async (member) => {
      const objects = places.filter((place) => {
        const at = place.reduce<unknown>((inner, step) => (inner as never)[step], operation.body);
        return typeof at === "object" && !Array.isArray(at);
      });
      expect(objects.length).toBeGreaterThan(0);
      for (const place of objects) {
        const body = withMember(operation.body, place, member, { polluted: true });
        const { errors } = expectProblem(await call(operation, body), 400, "invalid_request");
        expect(Object.keys(errors ?? {}).some((field) => field.endsWith(member))).toBe(true);
      }
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    },
  );

  it("returns a well-formed response for arbitrary JSON", async () => {
    const place = fc.constantFrom(...places);
    await fc.assert(
      fc.asyncProperty(place, fc.jsonValue({ maxDepth: 4 }), async (path, value) => {
        const body = replaceAtPath(operation.body, path, value);
        // The application and the nonce do not exist, so nothing can succeed.
        const elsewhere =
          operation === operations.authorize
            ? operation
            : { ...operations.update, path: () => `/applications/${newId(0)}` };
        const { status } = await call(elsewhere as Operation, body);
        expect([400, 403, 404]).toContain(status);
      }),
      { numRuns: repetitions({ quick: 15, full: 20 }) },
    );
  });
});

describe("a text field", () => {
  const controls = ["\u0000", "\u0007", "\b", "\n", "\r", "\t", "\u001b", "\u007f", "\u0085"];
  const separators = ["\u2028", "\u2029"];
  const surrogates = ["\ud83d", "\udd11", "\udd11\ud83d"];

  it.each([...controls, ...separators, ...surrogates])("refuses a name with %j", async (bad) => {
    const { create, update } = operations;
    for (const operation of [create, update]) {
      for (const name of [bad, `a${bad}`, `${bad}a`, `a${bad}b`]) {
        const response = await call(operation, { ...operation.body, name });
        const { errors } = expectProblem(response, 400, "invalid_request");
        expect(Object.keys(errors ?? {})).toEqual(["name"]);
      }
    }
  });

  it.each([...controls, ...separators, ...surrogates])(
    "refuses a container and a condition value with %j",
    async (bad) => {
      const rule = { ...applicationRule, container: `/a${bad}/` };
      const created = await call(operations.create, { ...operations.create.body, rules: [rule] });
      const { errors } = expectProblem(created, 400, "invalid_request");
      expect(Object.keys(errors ?? {})).toEqual(["rules[0].container"]);
      const condition = { attribute: "id", operator: "equals", value: `a${bad}b` };
      const granted = await call(operations.authorize, {
        ...operations.authorize.body,
        rules: [{ ...sessionRule, conditions: [condition] }],
      });
      expect(expectProblem(granted, 400, "invalid_request").errors).toHaveProperty([
        "rules[0].conditions[0].value",
      ]);
    },
  );

  it.each(["\u0000", "\r", "\u001b", "\ud83d"])("refuses a description with %j", async (bad) => {
    const rules = [{ ...applicationRule, description: `two\nlines\t${bad}` }];
    const response = await call(operations.create, { ...operations.create.body, rules });
    expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty([
      "rules[0].description",
    ]);
  });

  it("explains an unpaired surrogate", async () => {
    for (const name of surrogates) {
      const response = await call(operations.create, { ...operations.create.body, name });
      expect(expectProblem(response, 400, "invalid_request").detail).toContain(
        "unpaired surrogate",
      );
    }
  });

  it("refuses a name of 201 characters of any byte length", async () => {
    for (const name of ["a".repeat(201), "🗝".repeat(201), "é".repeat(201)]) {
      const response = await call(operations.create, { ...operations.create.body, name });
      expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("name");
    }
  });

  it("treats a malformed nonce as unknown", async () => {
    for (const nonce of ["\u0000", "'; drop table", "🗝", "a".repeat(100), "__proto__"]) {
      const response = await call(operations.authorize, { ...operations.authorize.body, nonce });
      expectProblem(response, 404, "nonce_not_found");
    }
    const nonce = "a".repeat(101);
    const response = await call(operations.authorize, { ...operations.authorize.body, nonce });
    expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("nonce");
  });
});

describe("a duration field", () => {
  it.each<[grace_period: string, message: string]>([
    ["soon", "must be a duration such as 3600s"],
    ["-1s", "must be a duration such as 3600s"],
    ["315576000001s", "must be a duration such as 3600s"],
    ["0.000000001s", "must be at least 1s, or 0s to revoke the key at once"],
    ["0.999999999s", "must be at least 1s, or 0s to revoke the key at once"],
    ["2592000.000000001s", "must be at most 2592000s (30 days)"],
  ])("refuses %j: it %s", async (grace_period, message) => {
    const response = await call(operations.regenerate, { grace_period });
    expect(expectProblem(response, 400, "invalid_request").errors).toEqual({
      grace_period: [message],
    });
  });
});

describe("the path and the query", () => {
  const get = (path: string) => send(target, path, { headers: { ...target.json } });

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "$gt",
    encodeURIComponent('{"$gt":""}'),
    "[object%20Object]",
    "%00",
    "..%2Fkey",
    "%2e%2e",
    "%F0%9F%97%9D",
    "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1",
    "{0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a}",
    "0198c8a27f3e7c1d9b5a2f4e6d8c0b1a",
    "%200198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
  ])("refuses %s as an id", async (id) => {
    expect(expectProblem(await get(`/applications/${id}`), 400, "invalid_request").errors).toEqual({
      id: ["must be a valid UUID"],
    });
  });

  it.each<[query: string, field: string]>([
    ["id[$gt]=", "id[$gt]"],
    ["id[]=a", "id[]"],
    ["page[$gt]=1", "page[$gt]"],
    ["__proto__=1", "__proto__"],
    ["__proto__[polluted]=1", "__proto__[polluted]"],
    ["constructor=1", "constructor"],
    ["ID=1", "ID"],
    ["tenant_id=x", "tenant_id"],
    ["pageSize=2", "pageSize"],
    ["=1", ""],
    ["id=__proto__", "id"],
    ["id=%7B%22%24gt%22%3A%22%22%7D", "id"],
    ["start=%7B%22%24gt%22%3A%22%22%7D", "start"],
    ["start=%00", "start"],
    ["start=%ff", "start"],
    [`start=${"a".repeat(101)}`, "start"],
    ["size=1&size=2", "size"],
    ["page=1&page=1", "page"],
    ["start=a&start=b", "start"],
    ["page=1e3", "page"],
    ["page=0x10", "page"],
    ["page=1.0", "page"],
    ["page=+1", "page"],
    ["page=%201", "page"],
    ["page=one", "page"],
    ["page=-1", "page"],
    ["page=-0", "page"],
    ["page=2147483648", "page"],
    ["page=99999999999", "page"],
    ["page=%zz", "page"],
    ["size=0", "size"],
    ["size=101", "size"],
    ["size=NaN", "size"],
    [Array.from({ length: 101 }, () => `id=${newId(0)}`).join("&"), "id"],
  ])("refuses ?%s and names the parameter", async (query, field) => {
    const response = await get(`/applications?${query}`);
    const { errors } = expectProblem(response, 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toEqual([field]);
  });

  it("refuses query parameters on every path that has none", async () => {
    const id = target.privateId;
    for (const [method, path] of [
      ["GET", "/applications/key"],
      ["GET", `/applications/${id}`],
      ["DELETE", `/applications/${id}`],
      ["POST", `/applications/${id}/regenerate`],
      ["PUT", `/applications/${id}`],
      ["POST", "/applications"],
    ] as const) {
      const response = await send(target, `${path}?force=1`, {
        method,
        headers: { ...target.json },
      });
      expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("force");
    }
  });

  it("accepts an id in upper case", async () => {
    const id = target.privateId.toUpperCase();
    const one = await get(`/applications/${id}`);
    expect(JSON.parse(one.body)).toMatchObject({ id: target.privateId });
    const { data } = JSON.parse((await get(`/applications?id=${id}`)).body);
    expect(data).toEqual([expect.objectContaining({ id: target.privateId })]);
  });

  it("returns an empty page after the last one", async () => {
    const { status, body } = await get("/applications?page=2147483647&size=100");
    expect({ status, ...JSON.parse(body) }).toMatchObject({ status: 200, data: [] });
  });
});
