import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "@jest/globals";
import { parseKey } from "../../../../src/contract/key-format.js";
import { newId } from "../../../../src/lib/uuid.js";
import { StoreUnavailable } from "../../../../src/store/port/errors.js";
import { seedTenant } from "../../../contract/api/fixtures.js";
import { keyOf } from "../../../support/api/api.js";
import { send } from "../../../support/http/http.js";
import { overrideStore } from "../../../support/service/store.js";
import { until } from "../../../support/until.js";
import { alice, bob, paths, read, record1, record2, useAuthZenTarget, write } from "./fixture.js";

const target = useAuthZenTarget({ lastUsedFlushInterval: 20 });
const aliceReads = { subject: alice, action: read, resource: record1 };

async function evaluate(request: object, key = target.key) {
  const { status, body } = await target.post(paths.evaluation, request, { "svc-api-key": key });
  expect(status).toBe(200);
  return body;
}

describe("the subject of an evaluation", () => {
  it("is an application by id or external id, a session by id, or a key", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const reader = await tenant.createApplication("private", {
      permissions: ["token:read"],
      externalId: "billing-7",
    });
    const session = await tenant.openSession({ permissions: ["token:read"] });
    const subjects = [
      { type: "application", id: reader.id },
      { type: "api_key", id: reader.key },
      { type: "session", id: parseKey(session.key)?.id },
      { type: "api_key", id: session.key },
      { type: "user", id: "billing-7" },
      { type: "service", id: "billing-7" },
    ];
    for (const subject of subjects) {
      const request = { subject, action: read, resource: { type: "token", id: "card-1" } };
      expect(await evaluate(request, tenant.backend.key)).toEqual({
        decision: true,
        context: { transform: "mask" },
      });
    }
  });

  it.each<[reason: string, subject: object]>([
    ["unknown_principal", { type: "user", id: "mallory" }],
    ["unknown_principal", { type: "application", id: newId(0) }],
    ["unknown_principal", { type: "session", id: newId(0) }],
    ["invalid_request", { type: "application", id: "alice" }],
    ["invalid_request", { type: "session", id: "../x" }],
    ["invalid_request", { type: "api_key", id: "alice" }],
    ["invalid_request", { type: "user", id: "x".repeat(100_000) }],
    ["invalid_request", { type: "__proto__", id: "x".repeat(201) }],
  ])("is denied with the reason %s: %j", async (reason, subject) => {
    expect(await evaluate({ ...aliceReads, subject })).toEqual({
      decision: false,
      context: { reason, detail: expect.any(String) },
    });
  });

  it("is not found in another tenant", async () => {
    const { key } = await target.server.createTenant();
    for (const subject of [alice, { type: "application", id: target.alice.id }]) {
      expect(await evaluate({ ...aliceReads, subject }, key)).toMatchObject({
        decision: false,
        context: { reason: "unknown_principal" },
      });
    }
    const subject = { type: "api_key", id: target.alice.key };
    expect((await evaluate({ ...aliceReads, subject }, key)).context.reason).toBe("unknown_key");
  });
});

describe("the permission of an evaluation", () => {
  it.each<[type: string, name: string, decision: boolean]>([
    ["record", "read", true],
    ["record", "record:read", true],
    ["other", "record:read", true],
    ["other", "read", false],
    ["record", "delete", false],
  ])("is %s and %s", async (type, name, decision) => {
    const request = { subject: alice, action: { name }, resource: { type, id: "record-1" } };
    expect((await evaluate(request)).decision).toBe(decision);
  });

  it.each<[type: string, name: string]>([
    ["Record", "read"],
    ["record", "READ"],
    ["a:b:c", "read"],
    ["re cord", "read"],
    ["record", ":"],
    ["record", "x".repeat(10_000)],
  ])("is denied if it cannot exist: %s and %s", async (type, name) => {
    const request = { subject: alice, action: { name }, resource: { type, id: "record-1" } };
    expect(await evaluate(request)).toEqual({
      decision: false,
      context: { reason: "invalid_request", detail: expect.stringContaining("permission: must") },
    });
  });
});

describe("the resource and the context of an evaluation", () => {
  it("select the access rule by id and container", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const { id } = await tenant.createApplication("private", {
      rules: [
        { priority: 1, container: "/pci/", transform: "redact", permissions: ["token:read"] },
        { priority: 2, container: "/open/", transform: "reveal", permissions: ["token:read"] },
      ],
    });
    const decide = (properties?: object) =>
      evaluate(
        {
          subject: { type: "application", id },
          action: read,
          resource: { type: "token", id: "card-1", properties },
        },
        tenant.backend.key,
      );
    expect(await decide({ container: "/pci/high/" })).toMatchObject({
      decision: true,
      context: { transform: "redact" },
    });
    expect(await decide({ container: "/open/" })).toMatchObject({
      context: { transform: "reveal" },
    });
    expect(await decide()).toMatchObject({
      decision: false,
      context: { reason: "no_rule_matches" },
    });
    expect(await decide({ container: "//" })).toMatchObject({
      decision: false,
      context: { reason: "invalid_request" },
    });
  });

  it("carry the origin and the address of a restricted subject", async () => {
    const tenant = await seedTenant(target.server, target.api);
    const { id } = await tenant.createApplication("public", {
      permissions: ["token:read"],
      allowedOrigins: ["https://shop.example.com"],
      allowedCidrs: ["203.0.113.0/24"],
    });
    const decide = (context?: object) =>
      evaluate(
        {
          subject: { type: "application", id },
          action: read,
          resource: { type: "token", id: "card-1" },
          context,
        },
        tenant.backend.key,
      );
    const [origin, address] = ["https://shop.example.com", "203.0.113.7"];
    expect((await decide({ origin, address })).decision).toBe(true);
    expect((await decide()).context.reason).toBe("origin_not_allowed");
    expect((await decide({ origin })).context.reason).toBe("address_not_allowed");
    expect((await decide({ origin, address: "198.51.100.1" })).decision).toBe(false);
    expect((await decide({ origin, address: `${address}:4312` })).decision).toBe(true);
    const malformed = await decide({ origin, address: "unknown" });
    expect(malformed).toMatchObject({ decision: false, context: { reason: "invalid_request" } });
    const noAddress = await decide({ origin, address: "unix:" });
    expect(noAddress.context.reason).toBe("address_not_allowed");
  });
});

describe("values of other types in properties and context", () => {
  it.each<[name: string, request: object]>([
    ["container", { resource: { ...record1, properties: { container: 7 } } }],
    ["origin", { context: { origin: [] } }],
    ["address", { context: { address: { street: "Main St" } } }],
  ])("are ignored: %s", async (_name, given) => {
    const request = { ...aliceReads, ...given };
    expect((await evaluate(request)).decision).toBe(true);
    const { body } = await target.post(paths.evaluations, {
      ...request,
      evaluations: [{}, { ...given, subject: bob }],
    });
    expect(body.evaluations).toMatchObject([{ decision: true }, { decision: true }]);
    const found = await target.post(paths.searchSubject, { ...request, subject: { type: "user" } });
    expect(found.body.results).toEqual([bob, alice]);
  });
});

describe("several evaluations", () => {
  const evaluations = [
    { action: read },
    { action: write },
    { action: read, subject: alice },
    { action: write, subject: alice },
  ];
  const batch = { subject: bob, resource: record1, evaluations };

  it.each<[semantic: string | undefined, decisions: boolean[]]>([
    [undefined, [true, false, true, true]],
    ["execute_all", [true, false, true, true]],
    ["deny_on_first_deny", [true, false]],
    ["permit_on_first_permit", [true]],
  ])("end with the deciding one: %s", async (semantic, decisions) => {
    const options = { evaluations_semantic: semantic, another_option: "value" };
    const { status, body } = await target.post(paths.evaluations, { ...batch, options });
    expect(status).toBe(200);
    expect(body.evaluations.map(({ decision }: { decision: boolean }) => decision)).toEqual(
      decisions,
    );
  });

  it("end with the first denial beyond the first part of a large batch", async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({
      subject: index === 777 ? bob : alice,
      action: write,
    }));
    const { body } = await target.post(paths.evaluations, {
      resource: record2,
      evaluations: many,
      options: { evaluations_semantic: "deny_on_first_deny" },
    });
    expect(body.evaluations).toHaveLength(778);
    expect(body.evaluations.at(-1).decision).toBe(false);
  });

  it("do not use the keys after the deciding one", async () => {
    const { api, root } = target;
    const create = async (name: string) =>
      api.createApplication(root.key, {
        name,
        type: "private",
        permissions: ["record:read"],
      });
    const [first, second] = [await create("first"), await create("second")];
    const toItem = (created: typeof first) => ({
      subject: { type: "api_key", id: keyOf(created) },
    });
    const { body } = await target.post(paths.evaluations, {
      ...aliceReads,
      evaluations: [toItem(first), toItem(second)],
      options: { evaluations_semantic: "permit_on_first_permit" },
    });
    expect(body.evaluations).toHaveLength(1);
    const isUsed = async ({ id }: typeof first) =>
      (await api.getApplication(root.key, { id })).lastUsedAt !== undefined;
    await until(() => isUsed(first));
    expect(await isUsed(second)).toBe(false);
  });

  it("are replaced as a whole by the fields of an item, and report its missing ones", async () => {
    const { status, body } = await target.post(paths.evaluations, {
      ...aliceReads,
      evaluations: [{ resource: { type: "record" } }, { subject: { id: "bob" } }, {}],
    });
    expect(status).toBe(200);
    expect(body.evaluations).toEqual([
      {
        decision: false,
        context: { reason: "invalid_request", detail: expect.stringContaining("resource.id") },
      },
      {
        decision: false,
        context: { reason: "invalid_request", detail: expect.stringContaining("subject.type") },
      },
      { decision: true, context: { transform: "mask" } },
    ]);
  });

  it.each<[name: string, request: object, field: string]>([
    [
      "an unknown semantic",
      { ...batch, options: { evaluations_semantic: "any" } },
      "options.evaluations_semantic",
    ],
    ["options of a wrong type", { ...batch, options: [] }, "options"],
    ["an item of a wrong type", { ...batch, evaluations: [1] }, "evaluations[0]"],
    ["evaluations of a wrong type", { ...batch, evaluations: {} }, "evaluations"],
    ["a missing field without evaluations", { subject: bob }, "action"],
    [
      "more than 1,000 items",
      { ...batch, evaluations: Array.from({ length: 1_001 }, () => ({})) },
      "evaluations",
    ],
  ])("are refused with 400 for %s", async (_name, request, field) => {
    const { status, body } = await target.post(paths.evaluations, request);
    expect({ status, errors: Object.keys(body.errors) }).toEqual({
      status: 400,
      errors: expect.arrayContaining([field]),
    });
  });
});

describe("the caller of an evaluation", () => {
  const noKey = { "svc-api-key": undefined };

  it.each<[name: string, headers: (key: string) => Record<string, string>]>([
    ["the key header", (key) => ({ "svc-api-key": key })],
    ["a bearer token", (key) => ({ authorization: `Bearer ${key}` })],
    [
      "the password of Basic",
      (key) => ({ authorization: `Basic ${Buffer.from(`pep:${key}`).toString("base64")}` }),
    ],
  ])("authenticates with %s", async (_name, headersOf) => {
    for (const path of [paths.evaluation, paths.evaluations]) {
      const headers = { ...noKey, ...headersOf(target.key) };
      expect((await target.post(path, aliceReads, headers)).body.decision).toBe(true);
      const invalid = { ...noKey, ...headersOf("invalid") };
      expect((await target.post(path, aliceReads, invalid)).status).toBe(401);
    }
  });

  it("needs a key with access:check", async () => {
    const bodies = {
      [paths.evaluation]: aliceReads,
      [paths.evaluations]: aliceReads,
      [paths.searchSubject]: aliceReads,
      [paths.searchAction]: aliceReads,
    };
    for (const [path, body] of Object.entries(bodies)) {
      expect((await target.post(path, body, noKey)).status).toBe(401);
      const headers = { "svc-api-key": target.alice.key };
      expect(await target.post(path, body, headers)).toMatchObject({
        status: 403,
        body: { code: "permission_denied" },
      });
    }
  });
});

describe("the X-Request-ID of a response", () => {
  const ids = ["1", "a b;c", "x".repeat(1_000), '{"$ne":1}', "ü", `lk_prv_${"0".repeat(61)}`];

  it.each(ids)("is that of the request, whatever it is: %s", async (id) => {
    const { headers } = await target.post(paths.evaluation, aliceReads, { "x-request-id": id });
    expect(headers["x-request-id"]).toBe(id);
    const refused = await target.post(paths.evaluation, {}, { "x-request-id": id });
    expect({ status: refused.status, id: refused.headers["x-request-id"] }).toEqual({
      status: 400,
      id,
    });
  });

  it("is that of the request over HTTP/2", async () => {
    const session = connect(target.server.url);
    try {
      const stream = session.request({
        ":method": "POST",
        ":path": paths.evaluation,
        "content-type": "application/json",
        "svc-api-key": target.key,
        "x-request-id": "a b;ü",
      });
      const headers = new Promise<Record<string, unknown>>((resolve) =>
        stream.once("response", resolve),
      );
      stream.end(JSON.stringify(aliceReads));
      expect(JSON.parse(await text(stream)).decision).toBe(true);
      expect((await headers)["x-request-id"]).toBe("a b;ü");
    } finally {
      session.destroy();
    }
  });

  it("is logged only if it is well-formed and no key", async () => {
    const before = target.server.logs.length;
    for (const id of ids) {
      await target.post(paths.evaluation, aliceReads, { "x-request-id": id });
    }
    const logged = target.server.logs.slice(before).map(({ request_id }) => request_id);
    expect(logged).toEqual(
      ids.map((id) => (id === "1" ? id : expect.stringMatching(/^[0-9a-f-]{36}$/))),
    );
    // Other paths return only such ids.
    const { headers } = await target.post("/access/check", {}, { "x-request-id": "a b;c" });
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe("hostile requests", () => {
  const nested = `${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`;

  it.each<[name: string, body: unknown]>([
    ["deep JSON in an ignored field", `{"foo":${nested}}`],
    ["deep JSON in properties", `{"subject":{"type":"user","id":"alice","properties":${nested}}}`],
    ["a duplicate name", '{"subject":{"type":"user","id":"alice","id":"bob"}}'],
    ["an array", [aliceReads]],
    ["a string", '"alice"'],
    ["null", "null"],
    ["a number", "1"],
    ["properties of a wrong type", { ...aliceReads, subject: { ...alice, properties: "x" } }],
    ["a context of a wrong type", { ...aliceReads, context: ["x"] }],
    [
      "an unpaired surrogate in a container",
      '{"resource":{"type":"record","id":"1","properties":{"container":"\\ud800"}}}',
    ],
    ["a null subject", { ...aliceReads, subject: null }],
    ["a null id", { ...aliceReads, subject: { type: "user", id: null } }],
    ["an unpaired surrogate", '{"subject":{"type":"user","id":"\\ud800"}}'],
    ["invalid UTF-8", Buffer.from([0x7b, 0xff, 0x7d]).toString("latin1")],
  ])("are refused with 400: %s", async (_name, body) => {
    const { status, body: problem } = await target.post(paths.evaluation, body);
    expect({ status, code: problem.code }).toEqual({ status: 400, code: "invalid_request" });
  });

  it("cannot change a prototype", async () => {
    const body =
      '{"__proto__":{"decision":true},"constructor":{"prototype":{"allowed":true}},' +
      '"subject":{"type":"user","id":"bob","__proto__":{"id":"alice"}},' +
      '"action":{"name":"write"},"resource":{"type":"record","id":"record-1","properties":{"__proto__":{"container":"/"}}}}';
    const { status, body: result } = await target.post(paths.evaluation, body);
    expect({ status, decision: result.decision }).toEqual({ status: 200, decision: false });
    expect(({} as Record<string, unknown>).decision).toBeUndefined();
  });

  it("are refused with 413 if they are too large", async () => {
    const body = JSON.stringify({ ...aliceReads, foo: "x".repeat(1024 * 1024) });
    expect((await target.post(paths.evaluation, body)).status).toBe(413);
  });
});

describe("rate limits", () => {
  const limited = useAuthZenTarget({ environment: { RATE_LIMIT_PRIVATE: "1/h:10" } });

  it("count each evaluation of a batch, all or none", async () => {
    const batch = (size: number) =>
      limited.post(paths.evaluations, {
        ...aliceReads,
        evaluations: Array.from({ length: size }, () => ({})),
      });
    expect((await batch(8)).status).toBe(200);
    const refused = await batch(3);
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
    expect(refused.headers["retry-after"]).toMatch(/^\d+$/);
  });
});

describe("a store that is down", () => {
  let isDown = false;
  const fail = async () => {
    throw new StoreUnavailable("down");
  };
  const failing = useAuthZenTarget({
    wrapStore: (store) =>
      overrideStore(store, {
        applications: {
          find: (id) => (isDown ? fail() : store.applications.find(id)),
          findMany: (ids) => (isDown ? fail() : store.applications.findMany(ids)),
          list: (query, signal) => (isDown ? fail() : store.applications.list(query, signal)),
        },
      }),
  });

  it("is an error, never a decision or a result", async () => {
    const bodies = {
      [paths.evaluation]: aliceReads,
      [paths.evaluations]: { ...aliceReads, evaluations: [{}, {}] },
      [paths.searchSubject]: aliceReads,
      [paths.searchAction]: aliceReads,
    };
    for (const [path, body] of Object.entries(bodies)) {
      expect((await failing.post(path, body)).status).toBe(200);
    }
    isDown = true;
    for (const [path, body] of Object.entries(bodies)) {
      const { status, body: problem } = await failing.post(path, body);
      expect({ status, problem }).toMatchObject({
        status: 503,
        problem: { code: "store_unavailable" },
      });
      expect(problem).not.toHaveProperty("decision");
    }
  });
});

describe("a subject that lost its access", () => {
  it("is denied by the next evaluation", async () => {
    const { api, root } = target;
    const created = await api.createApplication(root.key, {
      name: "carol",
      type: "private",
      externalId: "carol",
      permissions: ["record:read"],
    });
    const { id } = created;
    const carol = { ...aliceReads, subject: { type: "user", id: "carol" } };
    expect((await evaluate(carol)).decision).toBe(true);
    await api.disableApplication(root.key, { id });
    expect((await evaluate(carol)).decision).toBe(false);
    await api.enableApplication(root.key, { id });
    expect((await evaluate(carol)).decision).toBe(true);
    await api.deleteApplication(root.key, { id });
    expect((await evaluate(carol)).decision).toBe(false);
    const subject = { type: "api_key", id: keyOf(created) };
    expect((await evaluate({ ...carol, subject })).decision).toBe(false);
  });
});

it("the metadata are not found without PUBLIC_URL, whatever the Host header", async () => {
  const path = "/.well-known/authzen-configuration";
  const { status, body } = await send(target.server, path, { headers: { host: "evil.example" } });
  expect({ status, code: JSON.parse(body).code }).toEqual({ status: 404, code: "path_not_found" });
  expect(JSON.parse(body).detail).toContain("PUBLIC_URL");
  expect(body).not.toContain("evil");
});
