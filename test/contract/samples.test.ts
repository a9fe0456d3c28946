import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { SampleCall } from "../../src/contract/samples/call.js";
import {
  createGuardSamples,
  createSamples,
  type Sample,
  type SampleLanguage,
} from "../../src/contract/samples/samples.js";
import { createRestApi } from "../support/api/rest.js";
import { characters } from "../support/generators/characters.js";
import { describeWith } from "../support/jest/suite.js";
import { startServer } from "../support/service/server.js";

type Environment = Readonly<Record<string, string>>;

interface Language {
  readonly tool: readonly [string, ...string[]];
  readonly isSlow?: boolean;
  /** Runs programs in a folder, one after the other in one process, and returns their output. */
  run(programs: readonly string[], folder: string, environment: Environment): Promise<string>;
}

const languages: Readonly<Record<SampleLanguage, Language>> = {
  curl: {
    tool: ["curl", "--version"],
    async run(programs, cwd, env) {
      const all = programs.map((it) => `${it} -sS; echo`).join("\n");
      return run("bash", ["-eu", ...(await writeFiles(cwd, ".sh", [all]))], { cwd, env });
    },
  },
  typescript: {
    tool: ["node", "--version"],
    async run(programs, folder, env) {
      const names = await writeFiles(folder, ".mts", programs);
      const all = names.map((name) => `await import("./${name}");`).join("\n");
      const [script = ""] = await writeFiles(folder, ".all.mts", [all]);
      return run(process.execPath, ["--import", "tsx", join(folder, script)], { env });
    },
  },
  go: {
    tool: ["go", "version"],
    // The first build takes half a minute.
    isSlow: true,
    async run(programs, cwd, env) {
      const functions = programs.map((it, index) => it.replace("func main()", `func f${index}()`));
      const calls = programs.map((_, index) => `f${index}()`).join("; ");
      const main = `package main\n\nfunc main() { ${calls} }`;
      const names = await writeFiles(cwd, ".go", [...functions, main]);
      return run("go", ["run", ...names], { cwd, env });
    },
  },
  python: {
    tool: ["python3", "--version"],
    async run(programs, cwd, env) {
      const names = JSON.stringify(await writeFiles(cwd, ".py", programs));
      const all = `import runpy\nfor name in ${names}: runpy.run_path(name)`;
      return run("python3", ["-c", all], { cwd, env });
    },
  },
};

async function run(command: string, args: string[], options: object): Promise<string> {
  return (await promisify(execFile)(command, args, options)).stdout.toString();
}

async function writeFiles(
  folder: string,
  ending: string,
  texts: readonly string[],
): Promise<string[]> {
  const names = texts.map((_, index) => `${index}${ending}`);
  await Promise.all(texts.map((text, index) => writeFile(join(folder, names[index] ?? ""), text)));
  return names;
}

const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
});
const text = fc.oneof(fc.string({ unit: characters }), visible);

const anyCall: fc.Arbitrary<Call> = fc.record({
  method: fc.constantFrom("POST", "PUT"),
  path: text.map((it) => `/a${encodeURIComponent(it)}?q=${encodeURIComponent(it)}`),
  key: fc.option(visible, { nil: undefined }),
  headers: fc.record({ "if-match": visible.map((it) => `"${it}"`) }),
  // JSON has no negative zero.
  body: fc
    .oneof(text, fc.dictionary(text, fc.jsonValue()))
    .map((value) => JSON.parse(JSON.stringify(value))),
});

type Call = Omit<SampleCall, "origin">;

const calls: readonly Call[] = [
  { method: "GET", path: "/plain", key: null },
  { method: "DELETE", path: "/item", keyHeader: "x-$k`!'" },
  { method: "POST", path: "/form", form: { token: "a&b='\"$\\ é\n", hint: "x" } },
  {
    method: "PUT",
    path: "/it's/[1-3]/{a,b}",
    key: "quote'\"$`\\!",
    body: [
      "'; exit 1; '",
      '"; exit 1; "',
      "$(exit 1) `exit 1` %s %q {x} \\",
      "line\nline\r\ttab \0 \u2028\u2029\u0085\ufeff \ud800 😀",
      JSON.parse('{"__proto__": {"a b": [true, false, null, 1e21, {}, []]}}'),
    ],
  },
  ...fc.sample(anyCall, 20),
];

const environmentKey = "key'\"$`";

/** Sends the calls with `send` and returns what a server received. */
async function record(send: (origin: string) => Promise<unknown>): Promise<unknown[]> {
  const received: unknown[] = [];
  const server = createServer(async (request, response) => {
    const { method, url = "", headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    received.push({ method, path: decodeURIComponent(url), headers, body: parseBody(body) });
    response.end("ok");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await send(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return received;
  } finally {
    server.close();
  }
}

function parseBody(body: string): unknown {
  if (body.startsWith("token=")) {
    return Object.fromEntries(new URLSearchParams(body));
  }
  return body === "" ? undefined : JSON.parse(body);
}

for (const [language, { tool, isSlow = false, run: runAll }] of Object.entries(languages)) {
  const defineTests = () => {
    let folder: string;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), "latchkey-samples-"));
      await mkdir(join(folder, "node_modules"));
      await symlink(process.cwd(), join(folder, "node_modules", "latchkey"));
    });

    afterEach(() => rm(folder, { recursive: true, force: true }));

    function runSamples(samples: readonly Sample[][], environment: Environment) {
      const programs = samples.flat().filter((it) => it.language === language);
      const { PATH = "", HOME = "" } = process.env;
      return runAll(
        programs.map(({ code }) => code),
        folder,
        { PATH, HOME, ...environment },
      );
    }

    it("send every text unchanged", async () => {
      const received = await record((origin) =>
        runSamples(
          calls.map((call) => createSamples({ ...call, origin })),
          { SVC_API_KEY: environmentKey },
        ),
      );
      expect(received).toEqual(
        calls.map(({ method, path, key, keyHeader = "svc-api-key", headers, body, form }) => ({
          method,
          path: decodeURIComponent(path),
          headers: expect.objectContaining({
            ...(key !== null && { [keyHeader]: key ?? environmentKey }),
            ...(body !== undefined && { "content-type": "application/json" }),
            ...headers,
          }),
          body: form ?? body,
        })),
      );
    });

    it("check the key of a caller, and print an error", async () => {
      const server = await startServer();
      try {
        const { key } = await server.createTenant();
        const caller = await createRestApi(server.url).createApplication(key, {
          name: "Caller",
          type: "private",
          permissions: ["token:read"],
        });
        const environment = { SVC_API_KEY: key, CALLER_KEY: caller.key ?? "" };
        const output = await runSamples(
          ["token:read", "token:write"].map((permission) =>
            createGuardSamples({ origin: server.url, permission }),
          ),
          environment,
        );
        expect(output.trim().split("\n")).toEqual(
          language === "curl"
            ? [
                expect.stringContaining('"allowed":true'),
                expect.stringContaining('"reason":"permission_missing"'),
              ]
            : ["allowed", "denied: permission_missing"],
        );
        const failing = { origin: server.url, method: "GET", path: "/events", key: caller.key };
        const error = await runSamples([createSamples(failing)], environment).catch(String);
        expect(error).toMatch(/403.*permission_denied/);
      } finally {
        await server.close();
      }
    });
  };
  describeWith(tool, `the sample programs in ${language}`, defineTests, { isSlow });
}
