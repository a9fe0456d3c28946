import { describe, expect, it } from "@jest/globals";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { useBadInputTarget } from "../../support/api/bad-input.js";
import { expectProblem, type HttpResponse, send } from "../../support/http/http.js";

const target = useBadInputTarget();
const application = { name: "a", type: "private", permissions: ["token:read"] };

function create(body: string | Uint8Array, headers: object = target.json): Promise<HttpResponse> {
  return send(target, "/applications", { method: "POST", headers: { ...headers }, body });
}

function authorize(key: string, body: object): Promise<HttpResponse> {
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  const text = JSON.stringify({ permissions: ["token:read"], ...body });
  return send(target, "/sessions/authorize", { method: "POST", headers, body: text });
}

async function openSession(): Promise<{ session_key: string; nonce: string }> {
  const headers = { "svc-api-key": target.publicKey };
  return JSON.parse((await send(target, "/sessions", { method: "POST", headers })).body);
}

describe("documented errors", () => {
  it.each<[what: string, field: string, body: string]>([
    ["malformed JSON", "request", "{"],
    ["an unknown field", "expiresAt", JSON.stringify({ ...application, expiresAt: null })],
    ["an invalid value", "name", JSON.stringify({ ...application, name: "" })],
    ["text for a timestamp", "expires_at", '{"expires_at":"tomorrow"}'],
    ["a day that does not exist", "expires_at", '{"expires_at":"2030-02-30T00:00:00Z"}'],
    ["a leap day in a common year", "expires_at", '{"expires_at":"2031-02-29T00:00:00Z"}'],
    ["a date without a time", "expires_at", '{"expires_at":"2030-01-01"}'],
    ["a time without an offset", "expires_at", '{"expires_at":"2030-01-01T00:00:00"}'],
    ["a five-digit year", "expires_at", '{"expires_at":"+10000-01-01T00:00:00Z"}'],
    ["a number for a timestamp", "expires_at", '{"expires_at":1900000000}'],
    [
      "an expiry in the past",
      "expires_at",
      JSON.stringify({ ...application, expires_at: "2020-01-01T00:00:00Z" }),
    ],
  ])("refuses %s with 400 and names the field", async (_what, field, body) => {
    const { errors } = expectProblem(await create(body), 400, "invalid_request");
    expect(Object.keys(errors ?? {})).toContain(field);
  });

  it("refuses an id that is not a UUID with 400", async () => {
    const response = await send(target, "/applications/42", { headers: { ...target.json } });
    expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("id");
  });

  it("refuses an invalid key with a 401 that depends only on the form of the key", async () => {
    const { nonce } = await openSession();
    const keysByForm = [
      [undefined, ""],
      ["x", "another-scheme"],
      [`${target.root.key}x`, target.root.key.slice(0, -1)],
      [generateKey("mgt", newId(0)), generateKey("ses", newId(0))],
      [nonce, generateKey("non", newId(0))],
    ];
    const detailOf = async (key: string | undefined) => {
      const headers = key === undefined ? {} : { "svc-api-key": key };
      const response = await send(target, "/applications/key", { headers });
      expect(response.headers["www-authenticate"]).toBe(
        'ApiKey realm="latchkey", header="SVC-API-KEY"',
      );
      return expectProblem(response, 401, "unauthenticated").detail;
    };
    const details = new Set<string>();
    for (const [one, other] of keysByForm) {
      const detail = await detailOf(one);
      expect(await detailOf(other)).toBe(detail);
      details.add(detail);
    }
    expect(details.size).toBe(keysByForm.length);
  });

  it("refuses a key without the permission with 403 and names the permission and the caller", async () => {
    const headers = { "svc-api-key": target.privateKey };
    const response = await send(target, "/applications", { headers });
    const { detail } = expectProblem(response, 403, "permission_denied");
    expect(detail).toContain("application:read");
    expect(detail).toContain(target.privateId);
  });

  it("refuses the wrong type of caller with 403", async () => {
    const headers = { "svc-api-key": target.root.key };
    const response = await send(target, "/sessions", { method: "POST", headers });
    expect(expectProblem(response, 403, "permission_denied").detail).toContain(
      "public application",
    );
  });

  it("refuses a session that is not authorized yet with 403", async () => {
    const headers = { "svc-api-key": (await openSession()).session_key };
    const response = await send(target, "/applications/key", { headers });
    const { detail } = expectProblem(response, 403, "permission_denied");
    expect(detail).toContain("not authorized yet");
  });

  it("returns 404 for another tenant's application and for an unknown one", async () => {
    const { applicationId } = await target.server.createTenant();
    for (const id of [applicationId, newId(0)]) {
      for (const method of ["GET", "DELETE"]) {
        const response = await send(target, `/applications/${id}`, {
          method,
          headers: { ...target.json },
        });
        expectProblem(response, 404, "application_not_found");
      }
    }
  });

  it("returns 404 for an unknown nonce and for one of an expired session", async () => {
    const unknown = await authorize(target.privateKey, { nonce: generateKey("non", newId(0)) });
    expectProblem(unknown, 404, "nonce_not_found");
    const { nonce } = await openSession();
    target.server.clock.advance(180_000);
    expectProblem(await authorize(target.privateKey, { nonce }), 404, "nonce_not_found");
  });

  it("refuses a used nonce with 409", async () => {
    const { nonce } = await openSession();
    expect((await authorize(target.privateKey, { nonce })).status).toBe(204);
    expectProblem(await authorize(target.privateKey, { nonce }), 409, "nonce_used");
  });

  it("refuses a body over the limit with 413 and another content type with 415", async () => {
    expectProblem(await create(" ".repeat(1024 * 1024 + 1)), 413, "body_too_large");
    const headers = { "svc-api-key": target.root.key, "content-type": "text/plain" };
    expectProblem(await create("{}", headers), 415, "unsupported_media_type");
  });

  it.each([
    [{ "content-type": "text/plain" }, 'has the type "text/plain"'],
    [{ "content-type": "x".repeat(1_000) }, `has the type "${"x".repeat(200)}…"`],
    [{}, "has no Content-Type"],
    [
      { "content-type": "application/json", "content-encoding": "gzip" },
      'is compressed with "gzip"',
    ],
  ])("names the type of a refused body and the accepted one: %j", async (headers, given) => {
    const response = await create("{}", { "svc-api-key": target.root.key, ...headers });
    expect(expectProblem(response, 415, "unsupported_media_type").detail).toBe(
      `The body ${given}. Send it as application/json, without compression.`,
    );
  });
});

describe("a request with several errors", () => {
  it.each<[what: string, body: string, type: string]>([
    ["malformed JSON", "{", "application/json"],
    ["another content type", "{}", "text/plain"],
    ["a body over the limit", "x".repeat(2 * 1024 * 1024), "application/json"],
  ])("returns 401 for its key rather than an error for %s", async (_what, body, type) => {
    expectProblem(await create(body, { "content-type": type }), 401, "unauthenticated");
  });

  it("returns 403 for its key rather than an error for an unreadable body", async () => {
    const headers = { "svc-api-key": target.privateKey, "content-type": "application/json" };
    expectProblem(await create("{", headers), 403, "permission_denied");
  });
});

describe("an invalid JSON body", () => {
  const good = JSON.stringify(application);
  const nested = (levels: number) => '{"a":'.repeat(levels) + good + "}".repeat(levels);
  const bytes = (name: string) => Buffer.from(good.replace('"a"', `"${name}"`), "latin1");

  it.each<[what: string, body: string | Uint8Array, detail: RegExp]>([
    ["only a brace", "{", /not valid JSON/],
    ["a trailing comma", good.replace("}", ",}"), /not valid JSON/],
    ["a comment", good.replace("{", "{/* */"), /not valid JSON/],
    ["single quotes", good.replaceAll('"', "'"), /not valid JSON/],
    ["two values", good + good, /not valid JSON/],
    ["a byte order mark twice", `\ufeff\ufeff${good}`, /not valid JSON/],
    ["NaN", good.replace('"a"', "NaN"), /not valid JSON/],
    ["a NUL", `${good}\u0000`, /not valid JSON/],
    ["a megabyte of quotes", '"'.repeat(1024 * 1024), /not valid JSON/],
    ["a megabyte of backslashes", `"${"\\".repeat(1024 * 1024 - 2)}`, /not valid JSON/],
    ["an unterminated string", `{"name":"${"a".repeat(100_000)}`, /not valid JSON/],
    ["an array", `[${good}]`, /must be an object/],
    ["a string", JSON.stringify(good), /must be an object/],
    ["a number", "42", /must be an object/],
    ["null", "null", /must be an object/],
    ["a duplicate name", good.replace("{", '{"name":"b",'), /name: is duplicated/],
    [
      "a duplicate name with escapes",
      good.replace("{", '{"n\\u0061me":"b",'),
      /name: is duplicated/,
    ],
    [
      "a nested duplicate name",
      '{"rules":[{"priority":1,"priority":2}]}',
      /rules\[0\]\.priority: is duplicated/,
    ],
    ["33 levels of nesting", nested(33), /nested deeper/],
    ["100000 levels of nesting", nested(100_000), /nested deeper/],
    ["a megabyte of brackets", "[".repeat(1024 * 1024), /not valid JSON|nested deeper/],
    ["a megabyte of braces with names", '{"a":'.repeat(200_000), /not valid JSON|nested/],
    ["bytes that are not UTF-8", bytes("\xff\xfe"), /not valid UTF-8/],
    ["an overlong UTF-8 slash", bytes("\xc0\xaf"), /not valid UTF-8/],
    ["a surrogate encoded as UTF-8", bytes("\xed\xa0\x80"), /not valid UTF-8/],
    ["compressed bytes", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), /not valid UTF-8/],
    ["UTF-16", Buffer.from(good, "utf16le"), /not valid JSON/],
  ])("is refused: %s", async (_what, body, detail) => {
    expect(expectProblem(await create(body), 400, "invalid_request").detail).toMatch(detail);
  });

  it("reports the first ten of many violations and that there are more", async () => {
    const rules = Array.from({ length: 1000 }, () => ({}));
    const response = await create(JSON.stringify({ ...application, rules }));
    const { detail, errors } = expectProblem(response, 400, "invalid_request");
    expect(Object.keys(errors ?? {}).length).toBeLessThanOrEqual(10);
    expect(detail).toMatch(/; and more$/);
  });

  it("reports only the start of a long name", async () => {
    const response = await create(`{"${"🗝".repeat(100_000)}":1}`);
    expect(expectProblem(response, 400, "invalid_request").detail.length).toBeLessThan(500);
  });
});

describe("content types", () => {
  const good = JSON.stringify({ nonce: "nonce", permissions: ["token:read"] });
  const authorizeAs = (type: string | undefined) =>
    send(target, "/sessions/authorize", {
      method: "POST",
      headers: {
        "svc-api-key": target.privateKey,
        ...(type !== undefined && { "content-type": type }),
      },
      body: good,
    });

  it.each([
    undefined,
    "",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "application/json-patch+json",
    "application/xml",
    "json",
    "text/plain; application/json",
    "application/proto",
  ])("refuses a body of type %j with 415", async (type) => {
    expectProblem(await authorizeAs(type), 415, "unsupported_media_type");
  });

  it.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "application/json ; charset=utf-8",
  ])("accepts %j", async (type) => {
    expectProblem(await authorizeAs(type), 404, "nonce_not_found");
  });

  it.each([undefined, "text/plain", "application/x-www-form-urlencoded", "nonsense"])(
    "accepts %j without a body",
    async (type) => {
      const headers = {
        "svc-api-key": target.publicKey,
        ...(type !== undefined && { "content-type": type }),
      };
      for (const length of [{}, { "content-length": 0 }, { "transfer-encoding": "chunked" }]) {
        const response = await send(target, "/sessions", {
          method: "POST",
          headers: { ...headers, ...length },
        });
        expect(response.status).toBe(201);
      }
    },
  );

  it("opens a session with an empty object and refuses any field in it", async () => {
    const headers = { "svc-api-key": target.publicKey, "content-type": "application/json" };
    const open = (body: string) => send(target, "/sessions", { method: "POST", headers, body });
    expect((await open("{}")).status).toBe(201);
    expect((await open(" {\n} ")).status).toBe(201);
    const { errors } = expectProblem(await open('{"ttl":1}'), 400, "invalid_request");
    expect(errors).toHaveProperty("ttl");
  });

  it("regenerates a key with and without a body", async () => {
    const { applicationId, key } = await target.server.createTenant();
    let current = key;
    for (const [type, body] of [
      ["text/plain"],
      ["nonsense"],
      ["application/json", "{}"],
      ["application/json", '{"grace_period":null}'],
      ["application/json", '{"grace_period":"2592000s"}'],
    ]) {
      const response = await send(target, `/applications/${applicationId}/regenerate`, {
        method: "POST",
        headers: { "svc-api-key": current, "content-type": type },
        ...(body !== undefined && { body }),
      });
      expect(response.status).toBe(200);
      current = JSON.parse(response.body).key;
    }
  });

  it("reports the missing fields of a create or update without a body", async () => {
    for (const [method, path] of [
      ["POST", "/applications"],
      ["PUT", `/applications/${target.privateId}`],
    ] as const) {
      const response = await send(target, path, { method, headers: { ...target.json } });
      expect(expectProblem(response, 400, "invalid_request").errors).toHaveProperty("name");
    }
  });
});
