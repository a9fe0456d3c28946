import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { useCleanup } from "../support/cleanup.js";
import { watchHealth } from "../support/http/raw-grpc.js";
import { isFullSuite } from "../support/jest/suite.js";
import { useMongo } from "../support/mongo/mongo.js";
import { uri } from "../support/mongo/uri.js";
import {
  type CapturedProcess,
  runLatchkey,
  withTempFolder,
} from "../support/service/run-latchkey.js";
import {
  firstKeyPattern,
  listeningPattern,
  useServices,
} from "../support/service/service-process.js";

const startService = useServices();
const stopAfterTest = useCleanup();

function run(args: string[], environment: Record<string, string>): CapturedProcess {
  const command = runLatchkey(args, environment);
  stopAfterTest(() => command.child.kill("SIGKILL"));
  return command;
}

const mongo = useMongo();

async function getOwnerName(url: string, key: string): Promise<string> {
  const response = await fetch(`${url}/applications/key`, { headers: { "SVC-API-KEY": key } });
  return ((await response.json()) as { name: string }).name;
}

describe("the first start with an empty data folder", () => {
  it("prints a key and a working curl command, once, on stderr: the log on stdout is JSON", () =>
    withTempFolder(async (DATA_DIR) => {
      const first = await startService({ DATA_DIR });
      const [, curl = ""] = await first.process.until(/^ +(curl .*)$/m);
      expect(curl).not.toContain("lk_mgt_");
      const env = { PATH: process.env.PATH, SVC_API_KEY: first.firstKey };
      const { stdout } = await promisify(execFile)("sh", ["-c", curl], { env });
      expect(JSON.parse(stdout)).toMatchObject({
        type: "management",
        permissions: expect.arrayContaining([
          "application:create",
          "application:read",
          "application:update",
          "application:delete",
        ]),
      });
      first.process.child.kill("SIGTERM");
      expect(await first.process.ended()).toBe(0);
      const { stdout: log, stderr } = first.process.output;
      expect(stderr).toMatch(/╭─ Your first key ─.*╯\n\n$/s);
      expect(log).not.toContain("lk_mgt_");
      const levels = log
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).level);
      expect(new Set(levels)).toEqual(new Set(["info"]));

      const second = await startService({ DATA_DIR });
      expect(second.process.output.stderr).not.toContain("lk_mgt_");
      expect(await getOwnerName(second.url, first.firstKey)).toBe("Bootstrap");
    }));

  it("keeps running if stderr is closed, and prints how to create another key", () =>
    withTempFolder(async (DATA_DIR) => {
      const service = run(["serve"], { DATA_DIR, PORT: "0", WORKERS: "1" });
      service.child.stderr?.destroy();
      const [hint] = await service.until(/latchkey bootstrap --tenant [\w-]+/);
      const [, ...args] = hint.split(" ");
      const another = run([...args, "--json"], { DATA_DIR });
      expect(await another.ended()).toBe(0);
      const [, url = ""] = await service.until(listeningPattern);
      const { key } = JSON.parse(another.output.stdout);
      expect(await getOwnerName(url, key)).toBe("Bootstrap");
    }));
});

describe("startup with GRANT_POLICY=open", () => {
  it("logs one warning, also with several workers", () =>
    withTempFolder(async (DATA_DIR) => {
      const { process } = await startService({ DATA_DIR, GRANT_POLICY: "open", WORKERS: "2" });
      const lines = process.output.stdout
        .split("\n")
        .filter((line) => line.includes("GRANT_POLICY"));
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: "warn" }]);
      expect(lines[0]).toContain("lets callers grant permissions that they do not hold");
    }));
});

describe("the options of serve", () => {
  it("win over the variables, also in workers and other commands", () =>
    withTempFolder(async (folder) => {
      const dataDir = join(folder, "by option");
      const variables = {
        DATA_DIR: join(folder, "by variable"),
        WORKERS: "1",
        PORT: "1",
        KEY_HEADER: "X-By-Variable",
        SESSION_TTL: "1h",
      };
      const service = run(
        ["serve", "--port=0", "--workers=2", "--data-dir", dataDir, "--key-header", "X-Key"],
        variables,
      );
      const [, url = ""] = await service.until(listeningPattern);
      const [key] = await service.until(firstKeyPattern);
      const response = await fetch(`${url}/applications/key`, { headers: { "X-Key": key } });
      expect(response.status).toBe(200);
      expect(readdirSync(folder)).toEqual(["by option"]);
      const second = run(["bootstrap", "--data-dir", dataDir], variables);
      expect(await second.ended()).toBe(0);
      expect(readdirSync(folder)).toEqual(["by option"]);
    }));
});

describe("startup with FIRST_KEY=hide and an empty data folder", () => {
  it.each(isFullSuite ? ["1", "2"] : ["1"])(
    "creates nothing and logs how to create the first key until one exists: WORKERS=%s",
    (WORKERS) =>
      withTempFolder(async (DATA_DIR) => {
        const environment = { DATA_DIR, FIRST_KEY: "hide", WORKERS, PORT: "0" };
        const hint = "docker compose run --rm latchkey-1 bootstrap";

        /** Starts and stops the service, and returns its output. */
        async function startAndStop(): Promise<string> {
          const service = run(["serve"], environment);
          await service.until(listeningPattern);
          service.child.kill("SIGTERM");
          expect(await service.ended()).toBe(0);
          return service.output.stdout + service.output.stderr;
        }

        for (const output of [await startAndStop(), await startAndStop()]) {
          expect(output).toContain(hint);
          expect(output).not.toContain("lk_");
        }
        expect(await run(["bootstrap"], environment).ended()).toBe(0);
        expect(await startAndStop()).not.toContain(hint);
      }),
  );
});

describe.each(isFullSuite ? ["embedded", "mongodb"] : ["embedded"])(
  "latchkey bootstrap on the %s store",
  (kind) => {
    async function withStore(use: (store: Record<string, string>) => Promise<void>): Promise<void> {
      await (kind === "mongodb"
        ? use({ MONGODB_URI: uri, MONGODB_DATABASE: mongo.createDatabase().databaseName })
        : withTempFolder((DATA_DIR) => use({ DATA_DIR })));
    }

    async function bootstrap(args: string[], store: Record<string, string>) {
      const command = run(["bootstrap", "--json", ...args], store);
      expect(await command.ended()).toBe(0);
      expect(command.output.stderr).toBe("");
      expect(command.output.stdout.split("\n")).toHaveLength(2);
      return JSON.parse(command.output.stdout);
    }

    it("prints one line of JSON, whose key works while the service runs", () =>
      withStore(async (store) => {
        const { url } = await startService(store);
        const created = await bootstrap(["--name", "Platform team"], store);
        expect(Object.keys(created)).toEqual(["tenant_id", "application_id", "key"]);
        expect(await getOwnerName(url, created.key)).toBe("Platform team");
      }));

    it("creates a new tenant each time, or an application in the given tenant", () =>
      withStore(async (store) => {
        const first = await bootstrap([], store);
        const second = await bootstrap([], store);
        const third = await bootstrap(["--tenant", first.tenant_id.toUpperCase()], store);
        expect(second.tenant_id).not.toBe(first.tenant_id);
        expect(third.tenant_id).toBe(first.tenant_id);
        expect(third.application_id).not.toBe(first.application_id);
      }));
  },
);

async function stderrOf(args: string[], environment: Record<string, string>): Promise<string> {
  const command = run(args, environment);
  expect(await command.ended()).not.toBe(0);
  expect(command.output.stdout).toBe("");
  return command.output.stderr;
}

describe.each(isFullSuite ? ["1", "2"] : ["1"])("a failed start with WORKERS=%s", (WORKERS) => {
  it("reports a port in use in one line", () =>
    withTempFolder(async (DATA_DIR) => {
      const other = createServer().listen(0, "127.0.0.1");
      await new Promise((resolve) => other.once("listening", resolve));
      const PORT = String((other.address() as AddressInfo).port);
      const line = await stderrOf(["serve"], { WORKERS, DATA_DIR, PORT });
      expect(line).toBe(
        `latchkey: 127.0.0.1:${PORT} is already in use: stop the other program or set PORT to another port\n`,
      );
      other.close();
    }));

  it("reports an unwritable data folder in one line", () =>
    withTempFolder(async (folder) => {
      const file = join(folder, "file");
      await writeFile(file, "not a folder");
      const line = await stderrOf(["serve"], {
        WORKERS,
        DATA_DIR: join(file, "data"),
        PORT: "0",
      });
      expect(line).toMatch(/^latchkey: The data folder .+ cannot be used \(.*\): .*\n$/);
    }));

  it("reports an unreachable MongoDB in one line, without its password", async () => {
    const MONGODB_URI = "mongodb://user:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=500";
    const line = await stderrOf(["serve"], { WORKERS, MONGODB_URI, PORT: "0" });
    expect(line).toMatch(/^latchkey: MongoDB at 127.0.0.1:1 cannot be reached.*\n$/);
    expect(line).not.toContain("hunter2");
  });
});

describe("an invalid command", () => {
  it("prints one line for each invalid setting", async () => {
    const lines = await stderrOf(["serve"], { PORT: "http", LOG_LEVEL: "loud" });
    expect(lines.split("\n")).toEqual([
      expect.stringMatching(/^latchkey: PORT must be/),
      expect.stringMatching(/^latchkey: LOG_LEVEL must be/),
      "",
    ]);
  });

  it("names the option or the variable that was used", async () => {
    const lines = await stderrOf(["serve", "--port", "http", "--tls-cert", "/nowhere/TLS_CERT"], {
      PORT: "8080",
      SESSION_TTL: "soon",
    });
    expect(lines.split("\n")).toEqual([
      expect.stringMatching(/^latchkey: --port must be a port/),
      expect.stringMatching(/^latchkey: SESSION_TTL must be/),
      "latchkey: --tls-cert must be the path of a readable file; cannot read /nowhere/TLS_CERT",
      expect.stringMatching(/^latchkey: --tls-cert and TLS_KEY must be set together/),
      "",
    ]);
    expect(await stderrOf(["serve", "--data-dir", ""], {})).toBe(
      "latchkey: --data-dir must not be empty.\n",
    );
  });

  it("reports an invalid tenant id and an invalid name", () =>
    withTempFolder(async (DATA_DIR) => {
      expect(await stderrOf(["bootstrap", "--tenant", "42"], { DATA_DIR })).toContain("UUID");
      const line = await stderrOf(["bootstrap", "--name", "x".repeat(201)], { DATA_DIR });
      expect(line).toBe("latchkey: name: must be at most 200 characters\n");
    }));

  it("reports an unknown command", async () => {
    expect(await stderrOf(["fly"], {})).toContain("unknown command 'fly'");
  });

  it.each([
    ["sesions ls", "sessions"],
    ["apps lits", "list"],
    ["apps ls --tipe private", "--type"],
    ["serve --prot 8080", "--port"],
  ])("suggests the command or option that was meant: %s", async (line, meant) => {
    expect(await stderrOf(line.split(" "), {})).toContain(`(Did you mean ${meant}?)`);
  });
});

describe("SIGTERM", () => {
  it("stops the service with exit code 0 after it has closed open streams", () =>
    withTempFolder(async (DATA_DIR) => {
      const { url, process } = await startService({ DATA_DIR });
      const session = connect(url);
      const stream = watchHealth(session);
      const statuses: number[] = [];
      await new Promise<void>((resolve, reject) => {
        stream.on("error", reject);
        stream.on("data", (frame: Buffer) => {
          statuses.push(frame.at(-1) ?? 0);
          process.child.kill("SIGTERM");
        });
        stream.on("end", resolve);
      });
      session.close();
      expect(statuses).toEqual([1, 2]);
      expect(await process.ended()).toBe(0);
      expect(process.output.stdout).toContain('"msg":"stopped"');
    }));
});
