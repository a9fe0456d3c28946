import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { CreateApplicationRequestSchema } from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { createLatchkeyClient, type LatchkeyNodeClient } from "../../src/client/create-guard.js";
import type { ApplicationType } from "../../src/contract/grants.js";
import { problemOf } from "../../src/contract/problem-report.js";
import { fieldErrorsOf, grantErrorsOf } from "../../web/console/validation/validate.js";
import { keyOf } from "../support/api.js";
import { startServer, type TestServer } from "../support/server.js";

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

/** What the service says of a call, by field. */
async function refusalOf(call: Promise<unknown>) {
  const outcome = await call.then(
    () => undefined,
    (thrown: unknown) => problemOf(thrown),
  );
  expect(outcome?.code).toBe("invalid_request");
  return outcome?.errors;
}

describe("the checks of the page", () => {
  it.each<[what: string, application: MessageInitShape<typeof CreateApplicationRequestSchema>]>([
    ["nothing", {}],
    ["a name that is not seen", { ...good, name: "\u200b" }],
    ["a name of two lines", { ...good, name: "a\u2028b" }],
    ["a type that is none", { ...good, type: "secret" }],
    ["names of permissions that are none", { ...good, permissions: ["Token:read", "token"] }],
    ["a permission twice", { ...good, permissions: ["token:read", "token:read"] }],
    ["a container with an empty segment", { ...good, rules: [{ ...rule, container: "/a//b/" }] }],
    ["a container that climbs", { ...good, rules: [rule, { ...rule, container: "/a/../b" }] }],
    ["an empty container", { ...good, rules: [{ ...rule, container: "" }] }],
    ["conditions", { ...good, rules: [{ ...rule, conditions: [condition] }] }],
    ["a rule of nothing", { ...good, rules: [{}] }],
    ["a rule before all others", { ...good, rules: [{ ...rule, priority: -1 }] }],
    ["too many rules", { ...good, rules: Array.from({ length: 1_001 }, () => ({})) }],
    ["places that are none", { ...good, allowedOrigins: ["shop"], allowedCidrs: ["home"] }],
  ])("say of an application with %s what the service says", async (_, application) => {
    const message = create(CreateApplicationRequestSchema, application);
    const told = await refusalOf(client.applications.createApplication(application));
    expect(fieldErrorsOf(CreateApplicationRequestSchema, message)).toEqual(told);
  });

  it.each<[what: string, grants: MessageInitShape<typeof AuthorizeSessionRequestSchema>]>([
    ["nothing", {}],
    ["a container", { nonce: "a", rules: [{ ...sessionRule, container: "/pci/" }] }],
    ["a rule without conditions", { nonce: "a", rules: [{ ...sessionRule, conditions: [] }] }],
    ["an empty condition", { nonce: "a", rules: [{ ...sessionRule, conditions: [{}] }] }],
    [
      "an operator that is none",
      { nonce: "a", rules: [{ ...sessionRule, conditions: [{ ...condition, operator: "ends" }] }] },
    ],
  ])("say of a session with %s what the service says", async (_, grants) => {
    const message = create(AuthorizeSessionRequestSchema, grants);
    const told = await refusalOf(backend.sessions.authorizeSession(grants));
    expect(fieldErrorsOf(AuthorizeSessionRequestSchema, message)).toEqual(told);
  });

  it.each<[ApplicationType, MessageInitShape<typeof CreateApplicationRequestSchema>]>([
    ["private", { rules: [{ ...rule, container: undefined }] }],
    ["public", { permissions: ["application:delete"] }],
    ["public", { rules: [rule, { ...rule, permissions: ["token:read", "access:check"] }] }],
  ])("say what a %s application cannot have as the service does", async (type, grants) => {
    const application = { ...good, permissions: [], ...grants, type };
    const message = create(CreateApplicationRequestSchema, application);
    const told = await refusalOf(client.applications.createApplication(application));
    expect(grantErrorsOf(type, message)).toEqual(told);
  });

  it("find nothing wrong with what the service takes", () => {
    const message = create(CreateApplicationRequestSchema, { ...good, rules: [rule] });
    expect(fieldErrorsOf(CreateApplicationRequestSchema, message)).toEqual({});
    expect(grantErrorsOf("private", message)).toEqual({});
  });
});
