import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { CreateApplicationRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { createLatchkeyClient, type LatchkeyNodeClient } from "../../src/client/create-guard.js";
import type { ApplicationType } from "../../src/contract/grants.js";
import { problemOf } from "../../src/contract/problem-report.js";
import { fieldErrorsOf, grantErrorsOf } from "../../web/console/validation/validate.js";
import { keyOf } from "../support/api/api.js";
import { startServer, type TestServer } from "../support/service/server.js";

let server: TestServer;
let client: LatchkeyNodeClient;
let backend: LatchkeyNodeClient;

beforeAll(async () => {
  server = await startServer();
  const { key } = await server.createTenant();
  client = createLatchkeyClient({ url: server.url, key });
  const { applications } = client;
  const application = await applications.createApplication({ ...good, name: "Backend" });
  backend = createLatchkeyClient({ url: server.url, key: keyOf(application) });
});

afterAll(async () => {
  client.close();
  backend.close();
  await server.close();
});

const good = { name: "Web shop", type: "private", permissions: ["token:read"] };
const rule = { priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] };
const condition = { attribute: "id", operator: "equals", value: "card-1" };
const sessionRule = { ...rule, container: undefined, conditions: [condition] };

/** The field errors of a refused call. */
async function getFieldErrors(call: Promise<unknown>) {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => problemOf(thrown),
  );
  expect(outcome?.code).toBe("invalid_request");
  return outcome?.errors;
}

describe("console validation", () => {
  it.each<[title: string, application: MessageInitShape<typeof CreateApplicationRequestSchema>]>([
    ["no fields", {}],
    ["an invisible name", { ...good, name: "\u200b" }],
    ["a name with two lines", { ...good, name: "a\u2028b" }],
    ["an unknown type", { ...good, type: "secret" }],
    ["invalid permission names", { ...good, permissions: ["Token:read", "token"] }],
    ["a duplicate permission", { ...good, permissions: ["token:read", "token:read"] }],
    ["a container with an empty segment", { ...good, rules: [{ ...rule, container: "/a//b/" }] }],
    ["a container with .. segments", { ...good, rules: [rule, { ...rule, container: "/a/../b" }] }],
    ["an empty container", { ...good, rules: [{ ...rule, container: "" }] }],
    ["conditions", { ...good, rules: [{ ...rule, conditions: [condition] }] }],
    ["an empty rule", { ...good, rules: [{}] }],
    ["a negative priority", { ...good, rules: [{ ...rule, priority: -1 }] }],
    ["too many rules", { ...good, rules: Array.from({ length: 1_001 }, () => ({})) }],
    ["an overlong description", { ...good, description: "a".repeat(501) }],
    ["an external id with two lines", { ...good, externalId: "a\nb" }],
    ["an empty key and a value that is too long", { ...good, metadata: { "": "a".repeat(501) } }],
    [
      "too many pairs",
      { ...good, metadata: Object.fromEntries(Array.from({ length: 51 }, (_, key) => [key, ""])) },
    ],
    ["invalid origins and networks", { ...good, allowedOrigins: ["shop"], allowedCidrs: ["home"] }],
  ])(
    "reports the same errors as the service for an application with %s",
    async (_, application) => {
      const message = create(CreateApplicationRequestSchema, application);
      const expected = await getFieldErrors(client.applications.createApplication(application));
      expect(fieldErrorsOf(CreateApplicationRequestSchema, message)).toEqual(expected);
    },
  );

  it.each<[title: string, grants: MessageInitShape<typeof AuthorizeSessionRequestSchema>]>([
    ["no fields", {}],
    ["a container", { nonce: "a", rules: [{ ...sessionRule, container: "/pci/" }] }],
    ["a rule without conditions", { nonce: "a", rules: [{ ...sessionRule, conditions: [] }] }],
    ["an empty condition", { nonce: "a", rules: [{ ...sessionRule, conditions: [{}] }] }],
    [
      "an unknown operator",
      { nonce: "a", rules: [{ ...sessionRule, conditions: [{ ...condition, operator: "ends" }] }] },
    ],
  ])("reports the same errors as the service for a session with %s", async (_, grants) => {
    const message = create(AuthorizeSessionRequestSchema, grants);
    const expected = await getFieldErrors(backend.sessions.authorizeSession(grants));
    expect(fieldErrorsOf(AuthorizeSessionRequestSchema, message)).toEqual(expected);
  });

  it.each<[ApplicationType, MessageInitShape<typeof CreateApplicationRequestSchema>]>([
    ["private", { rules: [{ ...rule, container: undefined }] }],
    ["public", { permissions: ["application:delete"] }],
    ["public", { rules: [rule, { ...rule, permissions: ["token:read", "access:check"] }] }],
  ])("reports the same grant errors as the service for a %s application", async (type, grants) => {
    const application = { ...good, permissions: [], ...grants, type };
    const message = create(CreateApplicationRequestSchema, application);
    const expected = await getFieldErrors(client.applications.createApplication(application));
    expect(grantErrorsOf(type, message)).toEqual(expected);
  });

  it("reports no errors for a valid application", () => {
    const message = create(CreateApplicationRequestSchema, { ...good, rules: [rule] });
    expect(fieldErrorsOf(CreateApplicationRequestSchema, message)).toEqual({});
    expect(grantErrorsOf("private", message)).toEqual({});
  });
});
