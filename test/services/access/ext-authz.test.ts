import { readFileSync } from "node:fs";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HeaderValueOption_HeaderAppendAction } from "../../../gen/envoy/config/core/v3/base_pb.js";
import type { AttributeContextSchema } from "../../../gen/envoy/service/auth/v3/attribute_context_pb.js";
import {
  Authorization,
  type CheckResponse,
} from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import type { BootstrapResult } from "../../../src/bootstrap.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { seedTenant } from "../../contract/api/fixtures.js";
import type { Api } from "../../support/api/api.js";
import { createRestApi } from "../../support/api/rest.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

type Attributes = MessageInitShape<typeof AttributeContextSchema>;
type HttpRequest = NonNullable<NonNullable<Attributes["request"]>["http"]>;

let server: TestServer;
let api: Api;
let root: BootstrapResult;
let gateway: { readonly id: string; readonly key: string };
let reader: { readonly id: string; readonly key: string };

beforeAll(async () => {
  server = await startServer("lmdb", {
    environment: {
      GATEWAY_ROUTES: "examples/gateways/routes.yaml",
      RATE_LIMIT_PUBLIC: "1/h:2",
      TRUSTED_PROXIES: "10.0.0.0/8",
    },
  });
  api = createRestApi(server.url);
  root = await server.createTenant();
  gateway = await create("Gateway", ["access:check"]);
  reader = await create("Reader", ["token:read"]);
});

afterAll(() => server.close());

async function create(name: string, permissions: string[], rest: object = {}) {
  const request = { name, type: "private", permissions, ...rest };
  const { id, key = "" } = await api.createApplication(root.key, request);
  return { id, key };
}

/** The identity headers that the owner of the key does not have. */
const unset = ["x-latchkey-session-id", "x-latchkey-expires-at"];

const needsRead = { "latchkey-permission": "token:read" };

/** Sends a check as Envoy does. */
function check(
  attributes: Attributes | undefined,
  { key = gateway.key, on = server }: { key?: string; on?: TestServer } = {},
): Promise<CheckResponse> {
  const transport = createGrpcTransport({ baseUrl: on.url });
  return createClient(Authorization, transport).check(attributes ? { attributes } : {}, {
    headers: { "svc-api-key": key },
  });
}

/** Checks a request of a client on a route that needs `token:read`. */
const checkHeaders = (headers: Record<string, string>, rest: Attributes = {}) =>
  check({ contextExtensions: needsRead, request: { http: { headers } }, ...rest } as Attributes);

const withKey = (key: string) => ({ "svc-api-key": key });

/** Checks that a response allows the request, and returns it in a short form. */
function expectAllowed({ status, httpResponse, dynamicMetadata }: CheckResponse) {
  expect(status?.code).toBe(0);
  expect(httpResponse.case).toBe("okResponse");
  const { headers = [], headersToRemove = [] } =
    httpResponse.case === "okResponse" ? httpResponse.value : {};
  for (const { appendAction } of headers) {
    expect(appendAction).toBe(HeaderValueOption_HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD);
  }
  return {
    set: Object.fromEntries(headers.map(({ header }) => [header?.key, header?.value])),
    removed: headersToRemove,
    metadata: dynamicMetadata,
  };
}

/** Checks that a response denies the request with a problem, and returns its headers and body. */
function expectDenied(
  { status, httpResponse }: CheckResponse,
  expected: readonly [httpStatus: number, code: string, grpc: Code],
) {
  const [httpStatus, code, grpc] = expected;
  expect(status).toMatchObject({ code: grpc, message: expect.stringMatching(/./) });
  if (httpResponse.case !== "deniedResponse") {
    throw new Error(`The response is ${httpResponse.case}.`);
  }
  const { value } = httpResponse;
  expect(value.status?.code).toBe(httpStatus);
  const headers = Object.fromEntries(
    value.headers.map(({ header }) => [header?.key, header?.value]),
  );
  expect(headers).toMatchObject({
    "content-type": "application/problem+json",
    "x-latchkey-reason": code,
  });
  const problem = JSON.parse(value.body);
  expect(problem).toMatchObject({
    type: "about:blank",
    status: httpStatus,
    code,
    request_id: expect.any(String),
  });
  return { headers, problem };
}

const unauthenticated = [401, "unauthenticated", Code.Unauthenticated] as const;
const permissionDenied = [403, "permission_denied", Code.PermissionDenied] as const;

describe("ext_authz", () => {
  it("allows a request with the identity of the client, and removes its key", async () => {
    const { set, removed, metadata } = expectAllowed(await checkHeaders(withKey(reader.key)));
    expect(set).toEqual({
      "x-latchkey-application-id": reader.id,
      "x-latchkey-tenant-id": root.tenantId,
      "x-latchkey-transform": "mask",
    });
    // Those that are not set are removed, even if Envoy did not send them.
    expect(removed).toEqual(["svc-api-key", ...unset]);
    expect(metadata).toEqual({
      application_id: reader.id,
      tenant_id: root.tenantId,
      transform: "mask",
    });
  });

  it("removes forged identity headers that it does not set", async () => {
    const forged = {
      "x-latchkey-application-id": "forged",
      "x-latchkey-session-id": "forged",
      "x-latchkey-": "forged",
      "x-latchkey-other": "forged",
      "x-other": "kept",
      x_latchkey_session_id: "forged",
    };
    const { set, removed } = expectAllowed(
      await checkHeaders({ ...forged, ...withKey(reader.key) }),
    );
    expect(set["x-latchkey-application-id"]).toBe(reader.id);
    expect(removed.sort()).toEqual(
      ["svc-api-key", "x-latchkey-", "x-latchkey-other", "x_latchkey_session_id", ...unset].sort(),
    );
  });

  it("reads a bearer key and removes it, but no other credential", async () => {
    const bearer = await checkHeaders({ authorization: `Bearer ${reader.key}` });
    expect(expectAllowed(bearer).removed).toEqual(["svc-api-key", "authorization", ...unset]);
    const both = { authorization: `bearer ${reader.key}`, ...withKey(reader.key) };
    expect(expectAllowed(await checkHeaders(both)).removed).toContain("authorization");
    const other = { authorization: "Bearer of-the-upstream", ...withKey(reader.key) };
    expect(expectAllowed(await checkHeaders(other)).removed).toEqual(["svc-api-key", ...unset]);
    const different = { authorization: `Bearer ${gateway.key}`, ...withKey(reader.key) };
    const { problem } = expectDenied(await checkHeaders(different), [
      400,
      "invalid_request",
      Code.InvalidArgument,
    ]);
    expect(problem.errors).toHaveProperty("authorization");
  });

  it("reads raw headers, which Envoy sends with encode_raw_headers", async () => {
    const checkRaw = (...headers: [string, string][]) => {
      const raw = headers.map(([key, value]) => ({ key, rawValue: Buffer.from(value, "latin1") }));
      return check({
        contextExtensions: needsRead,
        request: { http: { headerMap: { headers: raw } } },
      });
    };
    const { removed } = expectAllowed(
      await checkRaw(["SVC-API-KEY", reader.key], ["X-Latchkey-Other", "a"], ["x-a", "\xff"]),
    );
    expect(removed).toEqual(["svc-api-key", ...unset, "x-latchkey-other"]);
    const repeated = [
      ["svc-api-key", "lk_prv_x"],
      ["svc-api-key", reader.key],
    ] as [string, string][];
    expectDenied(await checkRaw(...repeated), unauthenticated);
    expectDenied(await checkRaw(), unauthenticated);
  });

  it("denies a missing, invalid or revoked key with 401", async () => {
    const revoked = await create("Revoked", ["token:read"]);
    expectAllowed(await checkHeaders(withKey(revoked.key)));
    await api.deleteApplication(root.key, { id: revoked.id });
    const other = await server.createTenant();
    for (const key of ["", "lk_prv_x", "\u0000", "é", revoked.key, other.key]) {
      const { headers } = expectDenied(await checkHeaders(withKey(key)), unauthenticated);
      expect(headers["www-authenticate"]).toContain("SVC-API-KEY");
    }
  });

  it("denies what the key does not allow with 403", async () => {
    const extensions = { "latchkey-permission": "token:delete" };
    const request = { http: { headers: withKey(reader.key) } };
    const { problem } = expectDenied(
      await check({ contextExtensions: extensions, request }),
      permissionDenied,
    );
    expect(problem.detail).toContain("token:delete");
  });

  it("decides about the container and token of the route", async () => {
    const { key } = await create("Cards", [], {
      rules: [
        { priority: 1, container: "/pci/", transform: "reveal", permissions: ["token:read"] },
      ],
    });
    const checkIn = (container: string) =>
      checkHeaders(withKey(key), {
        contextExtensions: {
          ...needsRead,
          "latchkey-container": container,
          "latchkey-token-id": "card-4242",
        },
      });
    expect(expectAllowed(await checkIn("/pci/")).metadata).toMatchObject({ transform: "reveal" });
    expectDenied(await checkIn("/pii/"), permissionDenied);
  });

  it("denies above the rate limit of the client with 429 and Retry-After", async () => {
    const { key } = await create("Page", ["token:read"], { type: "public" });
    expectAllowed(await checkHeaders(withKey(key)));
    expectAllowed(await checkHeaders(withKey(key)));
    const { headers } = expectDenied(await checkHeaders(withKey(key)), [
      429,
      "rate_limited",
      Code.ResourceExhausted,
    ]);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  });

  it("applies the restrictions of the client to its address and origin", async () => {
    const office = await create("Office", ["token:read"], { allowedCidrs: ["203.0.113.0/24"] });
    const from = (address: string, forwardedFor = "203.0.113.9") =>
      checkHeaders(
        { ...withKey(office.key), "x-forwarded-for": forwardedFor },
        { source: { address: { socketAddress: { address } } } },
      );
    expectAllowed(await from("203.0.113.9", "198.51.100.1"));
    expectAllowed(await from("10.0.0.1"));
    const refusal = [403, "address_not_allowed", Code.PermissionDenied] as const;
    expectDenied(await from("198.51.100.1"), refusal);
    for (const withoutAddress of ["", "@", "unix:/run/client.sock"]) {
      expectDenied(await from(withoutAddress), refusal);
    }
    expectDenied(await checkHeaders(withKey(office.key)), refusal);
    expectAllowed(await from("203.0.113.9:4312"));
    expectAllowed(await from("10.0.0.1:4312"));
    expectDenied(await from("not an address"), [400, "invalid_request", Code.InvalidArgument]);
    const source = { address: { socketAddress: { address: "not an address" } } };
    expectAllowed(await checkHeaders(withKey(reader.key), { source }));

    const shop = await create("Shop", ["token:read"], {
      type: "public",
      allowedOrigins: ["https://shop.example"],
    });
    expectAllowed(await checkHeaders({ ...withKey(shop.key), origin: "https://shop.example" }));
    expectDenied(await checkHeaders({ ...withKey(shop.key), origin: "https://other.example" }), [
      403,
      "origin_not_allowed",
      Code.PermissionDenied,
    ]);
  });
});

describe("a route without context extensions", () => {
  const route = (http: HttpRequest) =>
    check({ request: { http: { method: "GET", headers: withKey(reader.key), ...http } } });

  it("needs what GATEWAY_ROUTES says", async () => {
    expectAllowed(await route({ path: "/cards/card-4242?x", host: "localhost:8000" }));
    expectDenied(await route({ path: "/cards/", method: "POST" }), permissionDenied);
    for (const path of ["/admin", "/cards/../admin", "", "*"]) {
      expectDenied(await route({ path }), permissionDenied);
    }
    for (const host of ["user@localhost", "[::1]:8000", ""]) {
      expectDenied(await route({ path: "/cards/card-4242", host }), permissionDenied);
    }
  });

  it("ignores forwarded headers of the client", async () => {
    const headers = {
      ...withKey(reader.key),
      "x-forwarded-uri": "/cards/x",
      "x-original-uri": "/",
    };
    expectDenied(await route({ path: "/admin", headers }), permissionDenied);
  });

  it("is denied if attributes are missing", async () => {
    const request = { http: { headers: withKey(reader.key) } };
    for (const attributes of [undefined, {}, { request: {} }, { request: { http: {} } }]) {
      expectDenied(await check(attributes), unauthenticated);
    }
    expectDenied(await check({ request }), permissionDenied);
  });
});

describe("names that an object inherits", () => {
  it("are neither keys nor extensions", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const hostile = Object.fromEntries(names.map((name) => [name, "forged"]));
    const headers = { ...hostile, ...withKey(reader.key) };
    const extensions = { ...hostile, ...needsRead };
    expectAllowed(await checkHeaders(headers, { contextExtensions: extensions }));
    expectDenied(await check({ request: { http: { headers } } }), permissionDenied);
    expectDenied(await checkHeaders(hostile), unauthenticated);
  });
});

describe("a gateway", () => {
  const codeOf = (response: Promise<unknown>) =>
    response.then(
      () => "ok",
      (error) => Code[ConnectError.from(error).code],
    );
  const request = { http: { headers: {} as Record<string, string> } };

  it("without a valid key or access:check gets an error, which Envoy denies", async () => {
    const attributes = { contextExtensions: needsRead, request };
    expect(await codeOf(check(attributes, { key: "" }))).toBe("Unauthenticated");
    expect(await codeOf(check(attributes, { key: "lk_prv_x" }))).toBe("Unauthenticated");
    expect(await codeOf(check(attributes, { key: reader.key }))).toBe("PermissionDenied");
  });

  it("is denied if its route names something that is not valid, incomplete or misspelled", async () => {
    for (const extensions of [
      { "latchkey-permission": "" },
      { "latchkey-permission": "read" },
      { "latchkey-container": "/pci/" },
      { ...needsRead, "latchkey-container": "" },
      { ...needsRead, "latchkey-token-id": "" },
      { ...needsRead, "latchkey-tokenid": "card-4242" },
    ]) {
      const response = await checkHeaders(withKey(reader.key), { contextExtensions: extensions });
      expect(response.status?.code).toBe(Code.PermissionDenied);
    }
  });

  it("gets an error while the store is unavailable", async () => {
    const find: typeof server.store.applications.find = (id) => {
      if (id === reader.id) {
        throw new StoreUnavailable("unavailable");
      }
      return server.store.applications.find(id);
    };
    const store = overrideStore(server.store, { applications: { find } });
    const on = await startServer("lmdb", { store });
    const attributes = {
      contextExtensions: needsRead,
      request: { http: { headers: withKey(reader.key) } },
    };
    expect(await codeOf(check(attributes, { on }))).toBe("Unavailable");
    await on.close();
  });

  it("needs no key with a client certificate that GATEWAY_CERTIFICATES names", async () => {
    const fixture = (name: string) => `test/fixtures/${name}`;
    const startTls = (GATEWAY_CERTIFICATES: string) =>
      startServer("lmdb", {
        store: server.store,
        environment: {
          TLS_CERT: fixture("localhost.crt"),
          TLS_KEY: fixture("localhost.key"),
          TLS_CLIENT_CA: fixture("client-ca.crt"),
          GATEWAY_CERTIFICATES,
        },
      });
    const nodeOptions = {
      ca: readFileSync(fixture("localhost.crt")),
      cert: readFileSync(fixture("client.crt")),
      key: readFileSync(fixture("client.key")),
    };
    const checkOn = ({ url }: TestServer, headers: Record<string, string> = {}) =>
      createClient(Authorization, createGrpcTransport({ baseUrl: url, nodeOptions })).check(
        {
          attributes: {
            contextExtensions: needsRead,
            request: { http: { headers: withKey(reader.key) } },
          },
        },
        { headers },
      );
    const named = await startTls(`client=${gateway.id}`);
    expectAllowed(await checkOn(named));
    // A key beside the certificate may come from a client of the gateway.
    const other = await seedTenant(server, createRestApi(server.url));
    expectAllowed(await checkOn(named, withKey(other.backend.key)));
    await named.close();
    const unnamed = await startTls(`other=${gateway.id}`);
    expect(await codeOf(checkOn(unnamed))).toBe("Unauthenticated");
    await unnamed.close();
    const weak = await startTls(`client=${reader.id}`);
    expect(await codeOf(checkOn(weak))).toBe("PermissionDenied");
    await weak.close();
  });
});
