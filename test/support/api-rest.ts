import {
  create,
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import {
  BatchCheckAccessRequestSchema,
  BatchCheckAccessResponseSchema,
  CheckAccessRequestSchema,
  CheckAccessResponseSchema,
  ListPermissionsResponseSchema,
  WhoAmIResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  CreateApplicationRequestSchema,
  ListApplicationsResponseSchema,
  UpdateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import {
  AuthorizeSessionRequestSchema,
  CreateSessionResponseSchema,
} from "../../gen/latchkey/v1/session_service_pb.js";
import { type Api, ApiFailure, type Key } from "./api.js";

/** The contract through fetch, by the documented paths. */
export function createRestApi(url: string): Api {
  async function call(key: Key, method: string, path: string, status: number, body?: JsonValue) {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key !== undefined && { "SVC-API-KEY": key }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    if (response.ok) {
      expectStatus(response.status, status, text);
      return text;
    }
    const problem = JSON.parse(text);
    if (response.headers.get("content-type") !== "application/problem+json") {
      throw new Error(`${method} ${path} failed without a problem body`);
    }
    const { code, detail, errors = {}, request_id } = problem;
    throw new ApiFailure(code, response.status, detail, errors, request_id);
  }

  const application = (text: string) => read(ApplicationSchema, text);
  return {
    createApplication: async (key, request) =>
      application(
        await call(
          key,
          "POST",
          "/applications",
          201,
          write(CreateApplicationRequestSchema, request),
        ),
      ),
    listApplications: async (key, request = {}) => {
      const query = new URLSearchParams();
      for (const name of ["page", "size", "start"] as const) {
        if (request[name] !== undefined) {
          query.set(name, String(request[name]));
        }
      }
      for (const id of request.id ?? []) {
        query.append("id", id);
      }
      return read(
        ListApplicationsResponseSchema,
        await call(key, "GET", `/applications?${query}`, 200),
      );
    },
    getApplication: async (key, { id }) =>
      application(await call(key, "GET", `/applications/${id}`, 200)),
    getApplicationByKey: async (key) =>
      application(await call(key, "GET", "/applications/key", 200)),
    updateApplication: async (key, { id, ...request }) =>
      application(
        await call(
          key,
          "PUT",
          `/applications/${id}`,
          200,
          write(UpdateApplicationRequestSchema, request),
        ),
      ),
    regenerateApplicationKey: async (key, { id }) =>
      application(await call(key, "POST", `/applications/${id}/regenerate`, 200)),
    deleteApplication: async (key, { id }) => {
      expectStatus((await call(key, "DELETE", `/applications/${id}`, 204)).length, 0, "a body");
    },
    createSession: async (key) =>
      read(CreateSessionResponseSchema, await call(key, "POST", "/sessions", 201)),
    authorizeSession: async (key, request) => {
      const body = write(AuthorizeSessionRequestSchema, request);
      expectStatus((await call(key, "POST", "/sessions/authorize", 204, body)).length, 0, "a body");
    },
    checkAccess: async (key, request) => {
      const body = write(CheckAccessRequestSchema, request);
      return read(CheckAccessResponseSchema, await call(key, "POST", "/access/check", 200, body));
    },
    batchCheckAccess: async (key, request) => {
      const body = write(BatchCheckAccessRequestSchema, request);
      const text = await call(key, "POST", "/access/check-batch", 200, body);
      return read(BatchCheckAccessResponseSchema, text);
    },
    whoAmI: async (key) => read(WhoAmIResponseSchema, await call(key, "GET", "/whoami", 200)),
    listPermissions: async (key, { type } = {}) => {
      const query = type === undefined ? "" : `?${new URLSearchParams({ type })}`;
      const text = await call(key, "GET", `/permissions${query}`, 200);
      return read(ListPermissionsResponseSchema, text);
    },
    close: () => {},
  };
}

function read<Desc extends DescMessage>(schema: Desc, text: string): MessageShape<Desc> {
  return fromJson(schema, JSON.parse(text));
}

function write<Desc extends DescMessage>(schema: Desc, init: unknown): JsonValue {
  const message = create(schema, init as never);
  return toJson(schema, message, { useProtoFieldName: true }) as JsonValue;
}

function expectStatus(actual: number, expected: number, what: string): void {
  if (actual !== expected) {
    throw new Error(`expected ${expected} and got ${actual}: ${what}`);
  }
}
