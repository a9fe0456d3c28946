import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { services } from "../../../src/contract/methods.js";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { type Cell, callMatrix } from "./matrix.js";
import { renderPage } from "./page.js";
import { areOpen, openServices, reflectedServices } from "./unauthenticated-methods.js";

const page = "docs/reference/authorization.md";
const methods = services.flatMap((service) => service.methods);

let server: TestServer;
let cells: Cell[];
let open: Record<string, boolean>;

beforeAll(async () => {
  // No slow machine times out.
  const environment = { ...rateLimitsOff, REQUEST_TIMEOUT: "1h" };
  server = await startServer("lmdb", { environment });
  cells = await callMatrix(server, methods);
  const { key } = await server.createTenant();
  open = await areOpen(server, [undefined, "secret", key]);
});

afterAll(() => server?.close());

describe("authorization", () => {
  it.each(methods.map((method) => [method.name, method] as const))(
    "%s accepts and refuses callers as its contract declares, with its permission and without",
    (_name, method) => {
      const row = cells.filter((cell) => cell.method === method);
      const results = (outcome: "expected" | "found") =>
        row.map(({ column, holding, ...cell }) => `${column.name}, ${holding}: ${cell[outcome]}`);
      expect(results("found")).toEqual(results("expected"));
      expect(row.some(({ found }) => found === "done")).toBe(true);
    },
  );

  it("health, metrics, OpenAPI and reflection need no key", () => {
    expect(Object.entries(open).filter(([, isOpen]) => !isOpen)).toEqual([]);
    expect(Object.keys(open)).toEqual(expect.arrayContaining(["/healthz", "/metrics"]));
  });

  it("covers every service that the server reflects", async () => {
    const known = [...services, ...openServices].map(({ typeName }) => typeName);
    expect(known.toSorted()).toEqual((await reflectedServices(server)).toSorted());
  });

  it(`matches ${page}`, () => {
    const text = renderPage(methods, cells, Object.keys(open));
    if (process.env.UPDATE_DOCS) {
      writeFileSync(page, text);
    }
    expect(readFileSync(page, "utf8")).toBe(text);
  });
});
