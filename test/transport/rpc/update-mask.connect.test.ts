import { gzipSync } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { BadRequestSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { createRestApi } from "../../support/api/rest.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send } from "../../support/http/http.js";
import { startServer, type TestServer } from "../../support/service/server.js";

const path = rpcPath(ApplicationService.method.updateApplication);
const before = { my_key: "a", myKey: "b", team: "c", other_key: "d", a_1: "e" };

let server: TestServer;
let root: BootstrapResult;
let id: string;

beforeAll(async () => {
  server = await startServer("lmdb");
  root = await server.createTenant();
});

afterAll(() => server?.close());

beforeEach(async () => {
  const application = { name: "a", type: "private", permissions: ["token:read"] };
  const api = createRestApi(server.url);
  ({ id } = await api.createApplication(root.key, { ...application, metadata: before }));
});

async function read() {
  const { body } = await send(server, `/applications/${id}`, {
    headers: { "svc-api-key": root.key },
  });
  return JSON.parse(body);
}

// The library itself reads compressed messages.
describe.each([{ encoding: "identity" }, { encoding: "gzip" }])(
  "an update mask in JSON over Connect, with the encoding $encoding",
  ({ encoding }) => {
    async function update(fields: object) {
      const json = JSON.stringify({ id, ...fields });
      const response = await send(server, path, {
        method: "POST",
        headers: {
          "svc-api-key": root.key,
          "content-type": "application/json",
          ...(encoding === "gzip" && { "content-encoding": "gzip" }),
        },
        body: encoding === "gzip" ? gzipSync(json) : json,
      });
      return { status: response.status, body: JSON.parse(response.body) };
    }

    async function expectRefused(fields: object): Promise<object[]> {
      const { status, body } = await update(fields);
      expect({ status, body }).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
      const detail = body.details.find(({ type }: never) => type === BadRequestSchema.typeName);
      return fromBinary(BadRequestSchema, base64Decode(detail.value)).fieldViolations.map(
        ({ field, reason, description }) => ({ field, reason, description }),
      );
    }

    it.each(["updateMask", "update_mask"])("names fields in either case: %s", async (name) => {
      for (const path of ["allowed_cidrs", "allowedCidrs"]) {
        const allowedCidrs = [path === "allowedCidrs" ? "192.0.2.0/24" : "198.51.100.0/24"];
        const changes = { description: "new", allowedCidrs };
        const { status } = await update({ ...changes, [name]: `${path},description` });
        expect(status).toBe(200);
        expect(await read()).toMatchObject({
          description: "new",
          allowed_cidrs: allowedCidrs,
          metadata: before,
        });
      }
    });

    it.each<[path: string, metadata: Record<string, string>, after: object]>([
      ["metadata.my_key", { my_key: "new" }, { my_key: "new" }],
      ["metadata.my_key", {}, { my_key: undefined }],
      ["metadata.team,metadata.other_key", { team: "new" }, { team: "new", other_key: undefined }],
      ["metadata.my_key", { my_key: "new", myKey: "new" }, { my_key: "new" }],
      // So standard clients send my_key.
      ["metadata.myKey", { my_key: "new" }, { my_key: "new" }],
    ])("changes exactly the key that it names: %s with %j", async (updateMask, metadata, after) => {
      expect(await update({ metadata, updateMask })).toMatchObject({ status: 200 });
      const expected = JSON.parse(JSON.stringify({ ...before, ...after }));
      expect((await read()).metadata).toEqual(expected);
    });

    it.each<[path: string, metadata: unknown, reason: string]>([
      ["metadata.myKey", { myKey: "new" }, ", where it stands for metadata.my_key"],
      ["metadata.myKey", { myKey: "new", my_key: "new" }, ", where it stands for metadata.my_key"],
      ["metadata.myKey", undefined, ", where it stands for metadata.my_key"],
      ["metadata.toString", {}, ", where it stands for metadata.to_string"],
      ["metadata.a_1", { a_1: "new" }, ""],
      ["metadata.my_Key", { my__key: "new" }, ""],
    ])("is refused if JSON cannot name the key: %s with %j", async (path, metadata, meaning) => {
      const reasons = await expectRefused({ metadata, updateMask: `team,${path}` });
      expect(reasons).toEqual([
        {
          field: "update_mask",
          reason: "field_mask.key",
          description: `cannot name "${path}" in JSON${meaning}: name metadata, or use PATCH over REST`,
        },
      ]);
      expect((await read()).metadata).toEqual(before);
    });

    it("is refused with a suggestion if it names an unknown field", async () => {
      expect(await expectRefused({ updateMask: "allowed_cidr" })).toMatchObject([
        {
          field: "update_mask",
          reason: "field_mask.in",
          description: expect.stringContaining("did you mean allowed_cidrs?"),
        },
      ]);
      expect(await expectRefused({ updateMask: 5 })).not.toEqual([]);
    });
  },
);
