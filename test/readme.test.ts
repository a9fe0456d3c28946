import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type ProblemCode, problemCatalogue } from "../src/problem-catalogue.js";
import { createRestApi } from "./support/api-rest.js";
import { lastingPorts } from "./support/lasting-ports.js";
import {
  cloneFolder,
  commandsIn,
  patternOf,
  runCommands,
  withoutSpace,
} from "./support/page-commands.js";
import { useService } from "./support/service-for-file.js";

const readme = readFileSync("README.md", "utf8");

/** The pages whose commands readers run, in the order in which they would. */
const pages = [
  "README.md",
  "docs/tutorials/first-session.md",
  "docs/tutorials/guard-a-service.md",
  "docs/tutorials/react.md",
  "docs/guides/rotate-a-key.md",
  "docs/guides/restrict-a-key.md",
];

describe("the commands in the documentation", () => {
  const service = useService();
  let parent: string;
  let clone: string;
  /** Of the service that the reader of a tutorial writes. */
  let port: number;

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), "latchkey-pages-"));
    clone = await cloneFolder(parent);
    [port = 0] = await lastingPorts(1);
  });

  afterAll(() => rm(parent, { recursive: true, force: true }));

  it("start the service, which prints the first key", async () => {
    const [start] = commandsIn("README.md").filter(({ label }) => label === "start the service");
    expect(start?.script).toBe("npm ci && npm start\n");
    const expected = (start?.expected ?? "").replaceAll("http://localhost:8080", service.url);
    expect(withoutSpace(service.process.output.stdout)).toMatch(patternOf(expected));
  });

  it.each(pages)(
    "of %s work in order, in one shell, and print what the page shows",
    async (page) => {
      const steps = await runCommands(commandsIn(page), {
        cwd: clone,
        environment: { LATCHKEY_URL: service.url },
        replacements: {
          "http://localhost:8080": service.url,
          "lk_mgt_…": service.firstKey,
          "3000": String(port),
        },
      });
      expect(steps.length).toBeGreaterThan(0);
      for (const { expected, output } of steps) {
        if (expected !== undefined) {
          expect(withoutSpace(output)).toMatch(patternOf(expected));
        }
      }
    },
  );

  it("create each application under a name of its own", async () => {
    const { data } = await createRestApi(service.url).listApplications(service.firstKey);
    const names = data.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toContain("Web shop");
  });

  it("come with an excerpt of the example", () => {
    const page = readFileSync("docs/tutorials/first-session.md", "utf8");
    const [, excerpt = "missing"] = /```ts\n(.*?)```/s.exec(page) ?? [];
    expect(readFileSync("examples/tour.ts", "utf8")).toContain(excerpt);
  });
});

describe("the settings in the README", () => {
  it("are those that the service reads", () => {
    const documented = [...readme.matchAll(/^\| (`[A-Z0-9_`, ]+) \|/gm)].flatMap(([, names = ""]) =>
      names.match(/[A-Z0-9_]+/g),
    );
    const files = readdirSync("src").filter((name) => /^config\.ts$|-settings\.ts$/.test(name));
    const source = files.map((name) => readFileSync(`src/${name}`, "utf8")).join("");
    const read = [...source.matchAll(/read\("([A-Z0-9_]+)"|read\(\n\s*"([A-Z0-9_]+)"/g)].map(
      ([, one, other]) => one ?? other,
    );
    expect([...documented].sort()).toEqual([...new Set(read)].sort());
  });
});

describe("the errors in the documentation", () => {
  it("are those of the catalogue, with their statuses", () => {
    const page = readFileSync("docs/api.md", "utf8");
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
