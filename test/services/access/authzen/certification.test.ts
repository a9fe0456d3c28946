import { fromJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { BatchEvaluateResponseSchema } from "../../../../gen/latchkey/v1/authzen_service_pb.js";
import { expectValid } from "../../../contract/api/assertions.js";
import { send } from "../../../support/http/http.js";
import { engines } from "../../../support/service/server.js";
import { alice, bob, paths, read, record1, record2, useAuthZenTarget, write } from "./fixture.js";

const aliceReads = { subject: alice, action: read, resource: record1 };
const context = { time: "2025-06-27T18:03-07:00", ip: "192.168.1.1" };
const publicUrl = "https://pdp.example.com";

/** The requests of the certification scenario of AuthZEN 1.0, by the numbers of its sections. */
describe.each(engines)("the AuthZEN certification scenario on %s", (engine) => {
  const target = useAuthZenTarget({ engine, environment: { PUBLIC_URL: publicUrl } });

  describe("Basic Core", () => {
    it.each<[section: string, request: object, decision: boolean]>([
      ["2.2.1", aliceReads, true],
      ["2.2.2", { subject: bob, action: write, resource: record1 }, false],
      ["2.2.3", { ...aliceReads, context }, true],
      [
        "2.2.8",
        {
          subject: { ...alice, properties: { department: "Sales", role: "manager" } },
          action: { ...read, properties: { method: "GET" } },
          resource: { ...record1, properties: { status: "active", owner: "bob" } },
        },
        true,
      ],
      ["2.2.9", { ...aliceReads, foo: "bar", futureField: { nested: true } }, true],
      ["rule 2", { subject: alice, action: write, resource: record1 }, true],
      ["rule 3", { subject: bob, action: read, resource: record1 }, true],
    ])("decides %s", async (_section, request, decision) => {
      const { status, headers, body } = await target.post(paths.evaluation, request);
      expect({ status, body }).toEqual({
        status: 200,
        body: { decision, context: expect.any(Object) },
      });
      expect(headers["content-type"]).toBe("application/json");
    });

    it.each<[section: string, request: unknown]>([
      ["2.4.1 subject", { action: read, resource: record1 }],
      ["2.4.1 action", { subject: alice, resource: record1 }],
      ["2.4.1 resource", { subject: alice, action: read }],
      ["2.4.2 subject.type", { ...aliceReads, subject: { id: "alice" } }],
      ["2.4.2 subject.id", { ...aliceReads, subject: { type: "user" } }],
      ["2.4.2 action.name", { ...aliceReads, action: {} }],
      ["2.4.2 resource.type", { ...aliceReads, resource: { id: "record-1" } }],
      ["2.4.2 resource.id", { ...aliceReads, resource: { type: "record" } }],
      ["2.4.4 request", '{"subject":'],
      ["2.4.5 subject", ""],
      ["2.4.6 subject", { ...aliceReads, subject: "alice" }],
      ["2.4.6 action.name", { ...aliceReads, action: { name: 123 } }],
    ])("refuses %s with 400", async (section, request) => {
      const { status, body } = await target.post(paths.evaluation, request);
      const [, field = ""] = section.split(" ");
      expect({ status, body }).toMatchObject({
        status: 400,
        body: { code: "invalid_request", errors: { [field]: expect.any(Array) } },
      });
    });

    it("refuses 2.4.3, another content type, with 400", async () => {
      const type = { "content-type": "text/plain" };
      const { status, body } = await target.post(paths.evaluation, aliceReads, type);
      expect(status).toBe(400);
      expect(Object.keys(body.errors)).toEqual(["content-type"]);
    });

    it("returns the X-Request-ID of 2.5.1, and one for 2.5.2", async () => {
      const id = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716";
      const echoed = await target.post(paths.evaluation, aliceReads, { "x-request-id": id });
      expect(echoed.headers["x-request-id"]).toBe(id);
      const { headers } = await target.post(paths.evaluation, aliceReads);
      expect(headers["x-request-id"]).toMatch(/./);
    });

    it("decides 2.6, a repeated request, in the same way", async () => {
      for (let count = 0; count < 5; count++) {
        expect((await target.post(paths.evaluation, aliceReads)).body.decision).toBe(true);
      }
    });
  });

  describe("Batch Core", () => {
    it.each<[section: string, request: object, decisions: boolean[]]>([
      [
        "3.2.1",
        {
          subject: alice,
          action: read,
          evaluations: [{ resource: record1 }, { resource: record2 }],
        },
        [true, true],
      ],
      [
        "3.2.2",
        { subject: bob, resource: record1, evaluations: [{ action: read }, { action: write }] },
        [true, false],
      ],
      [
        "3.2.5",
        { evaluations: [aliceReads, { subject: bob, action: write, resource: record1 }] },
        [true, false],
      ],
      [
        "3.2.6",
        {
          subject: alice,
          action: read,
          context,
          evaluations: [
            { resource: record1 },
            { resource: record2, context: { source: "batch-override" } },
          ],
        },
        [true, true],
      ],
      [
        "3.4.1",
        {
          subject: alice,
          action: read,
          options: { evaluations_semantic: "execute_all" },
          evaluations: [{ resource: record1 }, {}],
        },
        [true, false],
      ],
    ])("decides %s", async (_section, request, decisions) => {
      const { status, body } = await target.post(paths.evaluations, request);
      expect(status).toBe(200);
      expect(Object.keys(body)).toEqual(["evaluations"]);
      expectValid(BatchEvaluateResponseSchema, fromJson(BatchEvaluateResponseSchema, body));
      expect(body.evaluations.map(({ decision }: { decision: boolean }) => decision)).toEqual(
        decisions,
      );
    });

    it.each<[section: string, request: object]>([
      ["3.4.2", aliceReads],
      ["3.4.3", { ...aliceReads, evaluations: [] }],
    ])("decides %s as a single evaluation", async (_section, request) => {
      const { status, body } = await target.post(paths.evaluations, request);
      expect({ status, body }).toEqual({
        status: 200,
        body: { decision: true, context: { transform: "mask" } },
      });
    });
  });

  describe("Search Core of subjects and actions", () => {
    const search = { subject: { type: "user" }, action: read, resource: record1 };
    const found = [bob, alice];

    it.each<[section: string, request: object, results: object[]]>([
      ["4.2.1", search, found],
      ["4.2.2", { ...search, context }, found],
      ["4.2.3", { ...search, subject: alice }, found],
      ["4.6.2", { ...search, subject: { type: "spaceship" } }, []],
    ])("finds the subjects of %s", async (_section, request, results) => {
      const { status, body } = await target.post(paths.searchSubject, request);
      expect({ status, body }).toEqual({
        status: 200,
        body: { page: { next_token: "" }, results },
      });
    });

    it.each<[section: string, request: object, results: object[]]>([
      ["4.4.1", { subject: alice, resource: record1 }, [read, write]],
      ["4.4.2", { subject: alice, resource: record1, context }, [read, write]],
      ["4.6.1", { subject: { type: "user", id: "nonexistent-user" }, resource: record1 }, []],
    ])("finds the actions of %s", async (_section, request, results) => {
      const { status, body } = await target.post(paths.searchAction, request);
      expect({ status, body }).toEqual({ status: 200, body: { results } });
    });

    it("returns the pages of 4.5", async () => {
      const first = await target.post(paths.searchSubject, { ...search, page: { limit: 1 } });
      expect(first.body).toEqual({
        page: { next_token: expect.stringMatching(/./) },
        results: [bob],
      });
      const page = { token: first.body.page.next_token };
      const second = await target.post(paths.searchSubject, { ...search, page });
      expect(second.body).toEqual({ page: { next_token: "" }, results: [alice] });
    });

    it.each<[section: string, path: string, request: object]>([
      ["4.7.1", paths.searchSubject, { subject: { type: "user" }, resource: record1 }],
      ["4.7.1", paths.searchAction, { subject: alice }],
      ["4.7.2", paths.searchSubject, { ...search, resource: { type: "record" } }],
      ["4.7.2", paths.searchAction, { subject: { type: "user" }, resource: record1 }],
    ])("refuses %s with 400: %s", async (_section, path, request) => {
      expect((await target.post(path, request)).status).toBe(400);
    });
  });

  it("publishes the metadata of Discovery, without the resource search", async () => {
    const path = "/.well-known/authzen-configuration";
    const { status, headers, body } = await send(target.server, path);
    expect({ status, type: headers["content-type"] }).toEqual({
      status: 200,
      type: "application/json",
    });
    expect(JSON.parse(body)).toEqual({
      policy_decision_point: publicUrl,
      access_evaluation_endpoint: `${publicUrl}/access/v1/evaluation`,
      access_evaluations_endpoint: `${publicUrl}/access/v1/evaluations`,
      search_subject_endpoint: `${publicUrl}/access/v1/search/subject`,
      search_action_endpoint: `${publicUrl}/access/v1/search/action`,
    });
  });
});
