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
  ListPermissionsRequestSchema,
  ListPermissionsResponseSchema,
  WhoAmIResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  ApplicationSchema,
  CreateApplicationRequestSchema,
  ListApplicationKeysRequestSchema,
  ListApplicationKeysResponseSchema,
  ListApplicationsRequestSchema,
  ListApplicationsResponseSchema,
  RegenerateApplicationKeyRequestSchema,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import {
  EventSchema,
  ListEventsRequestSchema,
  ListEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { OverviewSchema } from "../../../gen/latchkey/v1/overview_service_pb.js";
import {
  AuthorizeSessionRequestSchema,
  AuthorizeSessionResponseSchema,
  CreateSessionResponseSchema,
  ListSessionsRequestSchema,
  ListSessionsResponseSchema,
  RevokeAllSessionsResponseSchema,
  SessionSchema,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { updateMaskOf } from "../../../src/contract/update-mask.js";
import { type Api, ApiFailure, headersFor, type Key, reportHeaders } from "./api.js";
import { toCheck } from "./checks.js";

/** Calls the API through fetch, with the documented REST paths. */
export function createRestApi(url: string): Api {
  async function call(
    key: Key,
    method: string,
    path: string,
    status: number,
    body?: JsonValue,
    ifMatch?: string,
    onHeaders?: (headers: Headers) => void,
  ) {
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(ifMatch !== undefined && { "if-match": `"${ifMatch.replaceAll('"', "")}"` }),
        ...headersFor(key),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    if (response.ok) {
      expectEqual(response.status, status, text);
      reportHeaders(key, response.headers);
      onHeaders?.(response.headers);
      return text;
    }
    const problem = JSON.parse(text);
    if (response.headers.get("content-type") !== "application/problem+json") {
      throw new Error(`${method} ${path} failed without a problem body`);
    }
    const { code, detail, errors = {}, request_id } = problem;
    const hasRetryHint = response.headers.has("retry-after");
    const { violations = [], missing_permissions = [], current_version } = problem;
    throw new ApiFailure(code, response.status, detail, errors, request_id, hasRetryHint, {
      violations,
      missingPermissions: missing_permissions,
      currentVersion: current_version,
    });
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
      const query = writeQuery(ListApplicationsRequestSchema, request);
      return read(
        ListApplicationsResponseSchema,
        await call(key, "GET", `/applications?${query}`, 200),
      );
    },
    getApplication: async (key, { id }) =>
      application(await call(key, "GET", `/applications/${id}`, 200)),
    getApplicationByKey: async (key) =>
      application(await call(key, "GET", "/applications/key", 200)),
    updateApplication: async (key, { id, ifMatch, updateMask, ...request }) => {
      const fields = write(UpdateApplicationRequestSchema, request) as JsonFields;
      const verb = updateMask ? "PATCH" : "PUT";
      const body = updateMask ? patchOf(fields, updateMask.paths ?? []) : fields;
      return application(await call(key, verb, `/applications/${id}`, 200, body, ifMatch));
    },
    regenerateApplicationKey: async (key, { id, ifMatch, gracePeriod }) => {
      const path = `/applications/${id}/regenerate`;
      const body = gracePeriod && write(RegenerateApplicationKeyRequestSchema, { gracePeriod });
      return application(await call(key, "POST", path, 200, body, ifMatch));
    },
    listApplicationKeys: async (key, { id, ...request }) => {
      const query = writeQuery(ListApplicationKeysRequestSchema, request);
      const text = await call(key, "GET", `/applications/${id}/keys?${query}`, 200);
      return read(ListApplicationKeysResponseSchema, text);
    },
    deleteApplicationKey: async (key, { id, keyId, ifMatch }) => {
      const path = `/applications/${id}/keys/${keyId}`;
      expectEmpty(await call(key, "DELETE", path, 204, undefined, ifMatch));
    },
    disableApplication: async (key, { id, ifMatch }) =>
      application(await call(key, "POST", `/applications/${id}/disable`, 200, undefined, ifMatch)),
    enableApplication: async (key, { id, ifMatch }) =>
      application(await call(key, "POST", `/applications/${id}/enable`, 200, undefined, ifMatch)),
    deleteApplication: async (key, { id, ifMatch }) =>
      expectEmpty(await call(key, "DELETE", `/applications/${id}`, 204, undefined, ifMatch)),
    createSession: async (key) =>
      read(CreateSessionResponseSchema, await call(key, "POST", "/sessions", 201)),
    authorizeSession: async (key, request) => {
      const body = write(AuthorizeSessionRequestSchema, request);
      let sessionId = "";
      const readId = (headers: Headers) => {
        sessionId = headers.get("latchkey-session-id") ?? "";
      };
      const path = "/sessions/authorize";
      expectEmpty(await call(key, "POST", path, 204, body, undefined, readId));
      return create(AuthorizeSessionResponseSchema, { sessionId });
    },
    listSessions: async (key, request = {}) => {
      const json = write(ListSessionsRequestSchema, request) as Record<string, string>;
      const text = await call(key, "GET", `/sessions?${new URLSearchParams(json)}`, 200);
      return read(ListSessionsResponseSchema, text);
    },
    getSession: async (key, { id }) =>
      read(SessionSchema, await call(key, "GET", `/sessions/${id}`, 200)),
    deleteSession: async (key, { id }) =>
      expectEmpty(await call(key, "DELETE", `/sessions/${id}`, 204)),
    revokeAllSessions: async (key, { id, openedOnly }) => {
      const path = `/applications/${id}/sessions/revoke-all`;
      const body = openedOnly === undefined ? undefined : { opened_only: openedOnly };
      return read(RevokeAllSessionsResponseSchema, await call(key, "POST", path, 200, body));
    },
    checkAccess: async (key, request) => {
      const body = write(CheckAccessRequestSchema, toCheck(request));
      return read(CheckAccessResponseSchema, await call(key, "POST", "/access/check", 200, body));
    },
    batchCheckAccess: async (key, { checks = [] }) => {
      const body = write(BatchCheckAccessRequestSchema, { checks: checks.map(toCheck) });
      const text = await call(key, "POST", "/access/check-batch", 200, body);
      return read(BatchCheckAccessResponseSchema, text);
    },
    whoAmI: async (key) => read(WhoAmIResponseSchema, await call(key, "GET", "/whoami", 200)),
    listPermissions: async (key, request = {}) => {
      const query = writeQuery(ListPermissionsRequestSchema, request);
      const text = await call(key, "GET", `/permissions?${query}`, 200);
      return read(ListPermissionsResponseSchema, text);
    },
    getEvent: async (key, { id }) =>
      read(EventSchema, await call(key, "GET", `/events/${id}`, 200)),
    listEvents: async (key, request = {}) => {
      const query = writeQuery(ListEventsRequestSchema, request);
      const text = await call(key, "GET", `/events?${query}`, 200);
      return read(ListEventsResponseSchema, text);
    },
    getOverview: async (key) => read(OverviewSchema, await call(key, "GET", "/overview", 200)),
    revokeKey: async (key, request) =>
      expectEmpty(await call(key, "POST", "/keys/revoke", 204, { ...request })),
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

/** A query string in which lists are repeated parameters. */
function writeQuery(schema: DescMessage, init: unknown): URLSearchParams {
  const fields = write(schema, init) as Record<string, JsonValue>;
  return new URLSearchParams(
    Object.entries(fields).flatMap(([name, value]) =>
      [value].flat().map((item) => [name, String(item)] as [string, string]),
    ),
  );
}

type JsonFields = Readonly<Record<string, JsonValue>>;

/** The merge patch that means the same as an update mask. */
function patchOf(fields: JsonFields, paths: readonly string[]): JsonValue {
  const { updatable = [] } = updateMaskOf(UpdateApplicationRequestSchema) ?? {};
  const names = paths.includes("*") ? updatable.map(({ name }) => name) : paths;
  const patch: Record<string, JsonValue> = {};
  for (const path of names) {
    const [name = "", ...rest] = path.split(".");
    const key = rest.join(".");
    const value = fields[name] ?? null;
    patch[name] =
      rest.length === 0
        ? value
        : { ...(patch[name] as JsonFields), [key]: (value as JsonFields | null)?.[key] ?? null };
  }
  return patch;
}

function expectEmpty(text: string): void {
  expectEqual(text, "", "the body");
}

function expectEqual<T>(actual: T, expected: T, what: string): void {
  if (actual !== expected) {
    throw new Error(`expected ${expected} and got ${actual}: ${what}`);
  }
}
