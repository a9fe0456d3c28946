import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type ProblemCode, problemCatalogue } from "../../src/contract/problems.js";
import { knownSettings } from "../deploy/known-settings.js";
import { scriptIn } from "../support/script-in.js";
import { startServer, type TestServer } from "../support/server.js";

const readme = readFileSync("README.md", "utf8");

describe("the tour in the README", () => {
  let server: TestServer;
  let key: string;

  beforeAll(async () => {
    server = await startServer();
    ({ key } = await server.createTenant());
  });

  afterAll(() => server.close());

  /** Runs a script as a reader would, but for the port. */
  async function walk(tour: string): Promise<string> {
    const script = scriptIn("README.md", `tour: ${tour}`).replaceAll(
      "http://localhost:8080",
      server.url,
    );
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
      env: { ...process.env, SVC_API_KEY: key, LATCHKEY_URL: server.url },
    });
    return stdout;
  }

  it("works with curl", async () => {
    const answers = (await walk("curl")).replaceAll("}{", "}\n{").trim().split("\n");
    const [list, backend, session, allowed, denied, self, permissions] = answers.map((answer) =>
      JSON.parse(answer),
    );
    expect(list.data.map(({ name }: { name: string }) => name)).toContain("Web shop");
    expect(backend.name).toBe("Backend");
    expect(session.name).toBe("Web shop");
    expect(allowed).toMatchObject({ allowed: true, transform: "mask" });
    expect(denied).toMatchObject({ allowed: false, reason: "permission_missing" });
    expect(self).toMatchObject({ kind: "session", permissions: ["application:read"] });
    expect(permissions.data.map(({ name }: { name: string }) => name)).toContain("token:read");
  });

  it("works with buf curl", async () => {
    const output = await walk("buf");
    expect(output).toContain('"key": "lk_prv_');
    expect(output).toContain('"pagination"');
    expect(output).toContain('"kind": "application"');
  });

  it("works with TypeScript over gRPC, and shows what is in the example", async () => {
    expect(await walk("typescript")).toBe("a session of Web shop may read tokens: mask\n");
    const [, excerpt = "missing"] = /```ts\n(.*?)```/s.exec(readme) ?? [];
    expect(readFileSync("examples/tour.ts", "utf8")).toContain(excerpt);
  });
});

describe("docs/reference/settings.md", () => {
  it("lists every setting that the service reads, and no other", () => {
    const page = readFileSync("docs/reference/settings.md", "utf8");
    const documented = [...page.matchAll(/^\| (`[A-Z0-9_`, ]+) \|/gm)].flatMap(([, names = ""]) =>
      names.match(/[A-Z0-9_]+/g),
    );
    expect([...documented].sort()).toEqual([...knownSettings()].sort());
  });
});

describe("docs/reference/errors.md", () => {
  it("lists every error code with its HTTP and gRPC status, and no other", () => {
    const page = readFileSync("docs/reference/errors.md", "utf8");
    expect(page).toContain(`"title": "${problemCatalogue.invalid_request.title}"`);
    const rows = [...page.matchAll(/\| `([a-z_]+)` \| (\d{3}) \| ([A-Z_]*) ?\|/g)];
    const documented = Object.fromEntries(rows.map(([, word, status]) => [word, Number(status)]));
    const known = Object.entries(problemCatalogue).map(([word, { status }]) => [word, status]);
    expect(documented).toEqual(Object.fromEntries(known));
    for (const [, word, , code] of rows) {
      const { grpc } = problemCatalogue[word as ProblemCode];
      const name = Code[grpc].replaceAll(/(?<=.)([A-Z])/g, "_$1").toUpperCase();
      expect(["", name, name.replace("CANCELED", "CANCELLED")]).toContain(code);
    }
  });
});
