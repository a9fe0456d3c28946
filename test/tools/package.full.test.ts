import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { build } from "esbuild";
import { killWithParent } from "../support/service/child-process.js";
import { captureOutput } from "../support/service/run-latchkey.js";
import { listeningPattern } from "../support/service/service-process.js";

interface PackedFile {
  readonly path: string;
}

/** Returns the output of a program. If it fails, the error contains the output. */
async function run(command: string, args: readonly string[], cwd = "."): Promise<string> {
  const output = await promisify(execFile)(command, args, { cwd }).catch((failure) => {
    throw new Error(`${command} ${args[0]}: ${failure.stdout}${failure.stderr}`);
  });
  return output.stdout;
}

const runTool = (name: string, ...args: string[]) => run(join("node_modules", ".bin", name), args);

describe("the published package", () => {
  let folder: string;
  let tarball: string;
  let files: string[];

  // Uses the build of the global setup: a rebuild would remove files that other tests use.
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-package-"));
    const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
    const [packed] = JSON.parse(await run("npm", args));
    tarball = join(folder, packed.filename);
    files = packed.files.map(({ path }: PackedFile) => path);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("contains only the program, its web pages, the protos and the documents", () => {
    const expected = [
      /^(LICENSE|README\.md|package\.json)$/,
      /^dist\/(src|gen)\/[^.]+(\.js|\.d\.ts)$/,
      /^dist\/web\/[^.]+\.(?:(?:js|css|svg|json)(?:\.(?:br|gz))?|html|png|woff2)$/,
      /^proto\/[^.]+\.proto$/,
    ];
    expect(files.filter((path) => !expected.some((pattern) => pattern.test(path)))).toEqual([]);
    expect(expected.filter((pattern) => !files.some((path) => pattern.test(path)))).toEqual([]);
  });

  it("passes publint", async () => {
    // Suggestions are ignored: publint suggests `sideEffects`, which would also cover web pages.
    await runTool("publint", "run", tarball, "--level", "warning", "--strict");
  });

  it("has types for ES modules", async () => {
    // The package is ESM only: no `require`, no Node 10 resolution.
    await runTool("attw", tarball, "--profile", "esm-only", "--no-definitely-typed");
  });

  describe("in an empty project", () => {
    let project: string;

    beforeAll(async () => {
      project = join(folder, "project");
      await mkdir(project);
      await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
      await writeFile(join(project, "program.ts"), program);
      const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
      await run("npm", ["install", tarball, ...options], project);
    });

    it("can be imported in Node", async () => {
      const imports = `
        import { createGuard, createLatchkeyClient } from "latchkey/client";
        import { ApplicationService } from "latchkey/proto";
        console.log(typeof createGuard, typeof createLatchkeyClient, ApplicationService.typeName);
      `;
      const args = ["--input-type=module", "--eval", imports];
      const output = await run(process.execPath, args, project);
      expect(output).toBe("function function latchkey.v1.ApplicationService\n");
    });

    it.each([
      ["Node", ["--module", "node16"]],
      ["bundlers", ["--module", "esnext", "--moduleResolution", "bundler"]],
    ])("has types for the module resolution of %s", async (_, options) => {
      const compiler = resolve("node_modules", "typescript", "bin", "tsc");
      const strict = ["--noEmit", "--strict", "--target", "es2023"];
      await run(process.execPath, [compiler, ...strict, ...options, "program.ts"], project);
    });

    it("can be bundled for browsers", async () => {
      const { metafile } = await build({
        absWorkingDir: project,
        entryPoints: ["program.ts"],
        bundle: true,
        format: "esm",
        platform: "browser",
        write: false,
        metafile: true,
      });
      const inputs = Object.keys(metafile.inputs).filter((path) => path.includes("/latchkey/"));
      expect(inputs).toContain("node_modules/latchkey/dist/src/client/browser.js");
      expect(inputs.join()).not.toContain("create-guard");
    });

    it("starts the service with its command", async () => {
      const child = spawn("npx", ["latchkey", "serve"], {
        cwd: project,
        env: { ...process.env, HOST: "127.0.0.1", PORT: "0", WORKERS: "1" },
        // A separate process group, because npx starts another process.
        detached: true,
      });
      killWithParent(child, { group: true });
      const service = captureOutput(child);
      const [, url] = await service.until(listeningPattern);
      const paths = ["/healthz", "/openapi.json", "/console", "/docs/errors/nonce_used"];
      const responses = await Promise.all(paths.map((path) => fetch(url + path)));
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      process.kill(-(child.pid as number), "SIGTERM");
      await service.ended();
    });
  });
});

const program = `
  import { createLatchkeyClient, problemOf } from "latchkey/client";
  import { type Application, ApplicationService } from "latchkey/proto";

  const latchkey = createLatchkeyClient({ url: "http://localhost:8080", key: "a key" });
  export async function first(): Promise<Application | undefined> {
    const { data } = await latchkey.applications.listApplications({ size: 1 });
    return data[0];
  }
  export const kind: "unary" = ApplicationService.method.listApplications.methodKind;
  export { problemOf };
`;
