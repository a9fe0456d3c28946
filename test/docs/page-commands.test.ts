import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { canRunProxy } from "../gateways/gateway.js";
import { createRestApi } from "../support/api/rest.js";
import { itIf } from "../support/jest/suite.js";
import { reservePorts } from "../support/service/ports.js";
import { useService } from "../support/service/service-process.js";
import { cloneFolder, commandsIn, runCommands, toPattern, withoutSpace } from "./page-commands.js";

/** The pages with commands, in reading order. */
const pages = [
  "README.md",
  "docs/tutorials/first-session.md",
  "docs/tutorials/guard-a-service.md",
  "docs/tutorials/react.md",
  "docs/guides/rotate-a-key.md",
  "docs/guides/respond-to-a-leaked-key.md",
  "docs/guides/restrict-a-key.md",
  "docs/guides/use-your-own-ids.md",
  "docs/reference/cli.md",
];

/** Needs Caddy. */
const gatewayTutorial = "docs/tutorials/gateway.md";

describe("the commands in the documentation", () => {
  const service = useService();
  let parent: string;
  let clone: string;
  /** The port of the service in the tutorial. */
  let port: number;
  let gatewayPort: number;
  let pagePort: number;

  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), "latchkey-pages-"));
    clone = await cloneFolder(parent);
    [port = 0, gatewayPort = 0, pagePort = 0] = await reservePorts(3);
  });

  afterAll(() => rm(parent, { recursive: true, force: true }));

  it("start the service, which prints the first key", async () => {
    const [start] = commandsIn("README.md").filter(({ label }) => label === "start the service");
    expect(start?.script).toBe("npm ci && npm start\n");
    const expected = (start?.expected ?? "").replaceAll("http://localhost:8080", service.url);
    expect(withoutSpace(service.process.output.stderr)).toMatch(toPattern(expected));
  });

  it("install the packages once", () => {
    const scripts = commandsIn("README.md").map(({ script }) => script);
    expect(scripts.filter((script) => /\bnpm (?:ci|i)\b/.test(script))).toHaveLength(1);
  });

  /** Runs the commands of a page and compares their output. */
  async function follow(page: string): Promise<void> {
    const steps = await runCommands(commandsIn(page), {
      cwd: clone,
      replacements: {
        "http://localhost:8080": service.url,
        "lk_mgt_…": service.firstKey,
        "3000": String(port),
        "8000": String(gatewayPort),
        "5173": String(pagePort),
      },
      input: service.firstKey,
    });
    expect(steps.length).toBeGreaterThan(0);
    for (const { expected, output } of steps) {
      if (expected !== undefined) {
        expect(withoutSpace(output)).toMatch(toPattern(expected));
      }
    }
  }

  it.each(pages)("work in order in one shell and print the documented output: %s", follow);

  itIf(
    canRunProxy("caddy"),
    `work in order and end with a revoked key refused: ${gatewayTutorial}`,
    "caddy is missing, see tools/gateways/install.sh",
    () => follow(gatewayTutorial),
  );

  it("are run for every tutorial, and each shows expected output", () => {
    const tutorials = readdirSync("docs/tutorials").map((name) => `docs/tutorials/${name}`);
    const followed = [...pages, gatewayTutorial];
    expect(tutorials.filter((page) => !followed.includes(page))).toEqual([]);
    const isSilent = (page: string) =>
      commandsIn(page).every(({ expected }) => expected === undefined);
    expect(tutorials.filter(isSilent)).toEqual([]);
  });

  it("show excerpts of the configuration of Caddy", () => {
    const page = readFileSync(gatewayTutorial, "utf8");
    const excerpts = [...page.matchAll(/```caddyfile\n(.*?)```/gs)].map(([, text = ""]) => text);
    expect(excerpts).toHaveLength(2);
    const config = withoutSpace(readFileSync("examples/gateways/caddy/Caddyfile", "utf8"));
    for (const excerpt of excerpts) {
      expect(config).toContain(withoutSpace(excerpt));
    }
  });

  it("create each application with a unique name", async () => {
    const { data } = await createRestApi(service.url).listApplications(service.firstKey);
    const names = data.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toContain("Web shop");
  });

  it("are followed by an excerpt of the example", () => {
    const page = readFileSync("docs/tutorials/first-session.md", "utf8");
    const [, excerpt = "missing"] = /## The same over gRPC.*?```ts\n(.*?)```/s.exec(page) ?? [];
    expect(readFileSync("examples/tour.ts", "utf8")).toContain(excerpt);
  });
});
