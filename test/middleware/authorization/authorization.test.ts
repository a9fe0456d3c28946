import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { services } from "../../../src/contract/methods.js";
import { rateLimitsOff } from "../../support/rate-limits-off.js";
import { startServer, type TestServer } from "../../support/server.js";
import { type Cell, callMatrix } from "./matrix.js";
import { renderPage } from "./page.js";
import { areOpen, openServices, reflectedServices } from "./unauthenticated-methods.js";

const page = "docs/authorization.md";
const methods = services.flatMap((service) => service.methods);

let server: TestServer;
let cells: Cell[];
let open: Record<string, boolean>;

beforeAll(async () => {
  // Generous, for slow machines.
  const environment = { ...rateLimitsOff, REQUEST_TIMEOUT: "1h" };
  server = await startServer("lmdb", { environment });
  cells = await callMatrix(server, methods);
  const { key } = await server.createTenant();
  open = await areOpen(server, [undefined, "secret", key]);
});

afterAll(() => server?.close());

describe("authorization", () => {
  it.each(methods.map((method) => [method.name, method] as const))(
    "%s admits exactly the callers in its contract, with and without its permission",
    (_name, method) => {
      const row = cells.filter((cell) => cell.method === method);
      const outcomes = (outcome: "expected" | "found") =>
        row.map(({ column, holding, ...cell }) => `${column.name}, ${holding}: ${cell[outcome]}`);
      expect(outcomes("found")).toEqual(outcomes("expected"));
      expect(row.some(({ found }) => found === "done")).toBe(true);
    },
  );

  it("admits everybody to health and reflection", () => {
    expect(Object.entries(open).filter(([, isOpen]) => !isOpen)).toEqual([]);
    expect(Object.keys(open)).toEqual(expect.arrayContaining(["/healthz", "/metrics"]));
  });

  it("covers every service that reflection lists", async () => {
    const known = [...services, ...openServices].map(({ typeName }) => typeName);
    expect(known.toSorted()).toEqual((await reflectedServices(server)).toSorted());
  });

  it(`matches the table in ${page}`, () => {
    const text = renderPage(methods, cells, Object.keys(open));
    if (process.env.UPDATE_DOCS) {
      writeFileSync(page, text);
    }
    expect(readFileSync(page, "utf8")).toBe(text);
  });
});
