import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Authorization } from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import { isUnauthenticated, services } from "../../../src/contract/methods.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { renderPage } from "./docs-page.js";
import { type Cell, callMatrix } from "./matrix.js";
import {
  checkUnauthenticatedAccess,
  listReflectedServices,
  unauthenticatedServices,
} from "./unauthenticated-methods.js";

const page = "docs/reference/authorization.md";
const testedServices = [
  ...services.filter((service) => !isUnauthenticated(service)),
  Authorization,
];
const methods = testedServices.flatMap((service) => service.methods);

let server: TestServer;
let cells: Cell[];
let unauthenticated: Record<string, boolean>;

beforeAll(async () => {
  // So that no call times out on a slow machine.
  const environment = {
    ...rateLimitsOff,
    REQUEST_TIMEOUT: "1h",
    PUBLIC_URL: "https://keys.example.com",
  };
  server = await startServer("lmdb", { environment });
  cells = await callMatrix(server, methods);
  const { key } = await server.createTenant();
  unauthenticated = await checkUnauthenticatedAccess(server, [undefined, "secret", key]);
});

afterAll(() => server?.close());

describe("authorization", () => {
  it.each(methods.map((method) => [method.name, method] as const))(
    "%s accepts and refuses callers as its contract declares, with its permission and without",
    (_name, method) => {
      const row = cells.filter((cell) => cell.method === method);
      const results = (outcome: "expected" | "actual") =>
        row.map(({ column, holding, ...cell }) => `${column.name}, ${holding}: ${cell[outcome]}`);
      expect(results("actual")).toEqual(results("expected"));
      expect(row.some(({ actual }) => actual === "done")).toBe(true);
    },
  );

  it("health, metrics, OpenAPI, reflection and RevokeKey need no key", () => {
    expect(Object.entries(unauthenticated).filter(([, isAllowed]) => !isAllowed)).toEqual([]);
    expect(Object.keys(unauthenticated)).toEqual(expect.arrayContaining(["/healthz", "/metrics"]));
  });

  it("covers every service that the server reflects", async () => {
    const tested = [...testedServices, ...unauthenticatedServices].map(({ typeName }) => typeName);
    expect(tested.toSorted()).toEqual((await listReflectedServices(server)).toSorted());
  });

  it(`matches ${page}`, () => {
    const text = renderPage(methods, cells, Object.keys(unauthenticated));
    if (process.env.UPDATE_DOCS) {
      writeFileSync(page, text);
    }
    expect(readFileSync(page, "utf8")).toBe(text);
  });
});
