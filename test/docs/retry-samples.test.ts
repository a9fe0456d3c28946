import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { describeWith } from "../support/jest/suite.js";

/** The first responses of the service. After them it returns 200. */
let refusals: { readonly status: number; readonly retryAfter?: string }[] = [];
let count = 0;
const server = createServer((_, response) => {
  count++;
  const { status, retryAfter } = refusals.shift() ?? { status: 200 };
  response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter });
  response.end(status === 200 ? "me" : '{"code":"the_code","detail":"The detail."}');
});
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "latchkey-retries-"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(() => {
  count = 0;
});

const page = readFileSync("docs/reference/errors.md", "utf8");

type Command = readonly [string, ...string[]];

interface Language {
  readonly name: string;
  readonly file: string;
  readonly tool: Command;
  readonly run: Command;
  readonly isSlow?: boolean;
}

const languages: readonly Language[] = [
  { name: "ts", file: "retry.mjs", tool: ["node", "--version"], run: ["node"] },
  // The first build takes half a minute.
  { name: "go", file: "retry.go", tool: ["go", "version"], run: ["go", "run"], isSlow: true },
  { name: "python", file: "retry.py", tool: ["python3", "--version"], run: ["python3"] },
];

for (const { name, file, tool, run, isSlow = false } of languages) {
  const defineTests = () => {
    async function runProgram() {
      const [, code = ""] = new RegExp(`^\`\`\`${name}\\n(.*?)^\`\`\``, "ms").exec(page) ?? [];
      const { port } = server.address() as AddressInfo;
      const path = join(folder, file);
      await writeFile(path, code.replaceAll("localhost:8080", `127.0.0.1:${port}`));
      const [command, ...args] = run;
      const env = { ...process.env, SVC_API_KEY: "key" };
      return promisify(execFile)(command, [...args, path], { env });
    }

    it("repeats a call that may succeed later", async () => {
      refusals = [
        { status: 429, retryAfter: "0" },
        { status: 503, retryAfter: "0" },
      ];
      expect((await runProgram()).stdout).toBe("me\n");
      expect(count).toBe(3);
    });

    it("stops at another error, and names its code", async () => {
      refusals = [{ status: 403 }];
      await expect(runProgram()).rejects.toThrow("the_code: The detail.");
      expect(count).toBe(1);
    });

    it("stops after four attempts", async () => {
      refusals = Array(9).fill({ status: 429, retryAfter: "0" });
      await expect(runProgram()).rejects.toThrow("the_code");
      expect(count).toBe(4);
    });
  };
  describeWith(tool, `the program of docs/reference/errors.md in ${name}`, defineTests, { isSlow });
}
