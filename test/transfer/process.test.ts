import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "@jest/globals";
import { readSettings } from "../../src/config.js";
import { createIdentify } from "../../src/identify.js";
import { createKeyring } from "../../src/keys.js";
import { openStore } from "../../src/open-store.js";
import type { ImportedApplication } from "../../src/store/transfer.js";
import { applicationLine, endLine, headerLine } from "../../src/transfer/write-lines.js";
import { hour, times } from "../store-contract/fixtures.js";
import {
  anImportedApplication,
  contentsOf,
  exportAll,
  fill,
  type Holdings,
  keyring,
} from "../store-contract/transfer-fixtures.js";
import { uri, useMongo } from "../support/mongo.js";
import { type LatchkeyProcess, latchkeyPath, runLatchkey, withFolder } from "../support/process.js";
import { until } from "../support/until.js";

const mongo = useMongo();
const running: LatchkeyProcess[] = [];

afterEach(() => {
  for (const { child } of running.splice(0)) {
    child.kill("SIGKILL");
  }
});

/** The settings of a store of its own. */
type Environment = Readonly<Record<string, string>>;

const kinds = ["embedded", "mongodb"] as const;
type Kind = (typeof kinds)[number];

/** The pepper of the keys that the stores are filled with. */
const KEY_PEPPER = "a pepper of these tests";

async function withStore<T>(kind: Kind, use: (environment: Environment) => Promise<T>): Promise<T> {
  if (kind === "mongodb") {
    const { databaseName } = mongo.createDatabase();
    return use({ KEY_PEPPER, MONGODB_URI: uri, MONGODB_DATABASE: databaseName });
  }
  return withFolder((DATA_DIR) => use({ KEY_PEPPER, DATA_DIR }));
}

/** Opens a store here, beside the processes that use it. */
async function withOpened<T>(
  environment: Environment,
  use: (store: Awaited<ReturnType<typeof openStore>>) => Promise<T>,
): Promise<T> {
  const store = await openStore(readSettings(environment));
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

function start(args: string[], environment: Environment): LatchkeyProcess {
  const started = runLatchkey(args, environment);
  running.push(started);
  return started;
}

/** Runs a command to its end. */
async function run(args: string[], environment: Environment) {
  const { ended, output } = start(args, environment);
  return { code: await ended(), ...output };
}

const held = (environment: Environment): Promise<Holdings> =>
  withOpened(environment, (store) => exportAll(store, 1_000));

describe.each([
  ["embedded", "mongodb"],
  ["mongodb", "embedded"],
] as const)("an installation that is moved from %s to %s", (from, to) => {
  it("is there whole, with keys that work, by file and by pipe", () =>
    withFolder((folder) =>
      withStore(from, async (source) => {
        const keys = await withOpened(source, (store) => fill(store, Date.now));
        const path = join(folder, "latchkey.ndjson");
        const exported = await run(["export", "--output", path], source);
        expect(exported).toMatchObject({ code: 0, stdout: "" });
        expect(exported.stderr).toMatch(/^exported 5 applications, 3 sessions and 3 events: .*\n$/);
        expect((await stat(path)).mode & 0o077).toBe(0);
        const piped = await run(["export"], source);
        expect(piped).toMatchObject({ code: 0, stderr: "" });
        expect(recordsIn(piped.stdout)).toEqual(recordsIn(await readFile(path, "utf8")));

        await withStore(to, async (target) => {
          const imported = await run(["import", path], target);
          expect(imported).toMatchObject({ code: 0, stderr: "" });
          expect(imported.stdout).toBe(
            "applications  5 added\nsessions      3 added\nevents        3 added\n",
          );
          expect(contentsOf(await held(target))).toEqual(contentsOf(await held(source)));
          await withOpened(target, async (store) => {
            const identify = createIdentify(store, keyring);
            for (const key of keys) {
              expect(await identify(key)).toBeDefined();
            }
          });

          const again = start(["import", "-"], target);
          again.child.stdin?.end(piped.stdout);
          expect(await again.ended()).toBe(0);
          expect(again.output.stdout).toContain("0 added, 5 there already");
        });
      }),
    ));
});

/** The lines of an export but the first, which tells when it was made. */
function recordsIn(text: string): string[] {
  return text.split("\n").slice(1);
}

/** How many bytes so many lines have. */
function endOfLine(text: string, count: number): number {
  return Buffer.byteLength(`${text.split("\n").slice(0, count).join("\n")}\n`);
}

/** An export of many applications. */
function manyLines(count: number): { records: ImportedApplication[]; lines: string[] } {
  const records = times(count, () => anImportedApplication({ permissions: ["token:read"] }));
  const counts = { applications: count, sessions: 0, events: 0 };
  return { records, lines: [headerLine({}), ...records.map(applicationLine), endLine(counts)] };
}

describe.each(kinds)("an import into the %s store", (kind) => {
  it("that is killed halfway is finished by the next", () =>
    withFolder((folder) =>
      withStore(kind, async (target) => {
        const { records, lines } = manyLines(2_000);
        const halfway = start(["import", "-"], target);
        // It is killed before it has read all of it.
        halfway.child.stdin?.on("error", () => {});
        halfway.child.stdin?.write(lines.slice(0, 1_100).join(""));
        await withOpened(target, (store) =>
          until(async () => !(await store.applications.isEmpty()), 20_000),
        );
        halfway.child.kill("SIGKILL");
        await halfway.ended();

        const path = join(folder, "latchkey.ndjson");
        await writeFile(path, lines.join(""));
        const { code, stdout } = await run(["import", path], target);
        expect(code).toBe(0);
        const [, added = "", there = ""] = /(\d+) added, (\d+) there already/.exec(stdout) ?? [];
        expect(Number(there)).toBeGreaterThan(0);
        expect(Number(added) + Number(there)).toBe(2_000);
        const { applications } = await held(target);
        expect(applications.map(({ id }) => id)).toEqual(records.map(({ id }) => id).sort());
      }),
    ));

  it("that meets bad lines or other records ends with 1, and tells them", () =>
    withFolder((folder) =>
      withStore(kind, async (target) => {
        const path = join(folder, "latchkey.ndjson");
        const record = anImportedApplication({ permissions: ["token:read"] });
        const [first = "", ...rest] = manyLines(1).lines;
        await writeFile(path, [first, applicationLine(record), ...rest].join(""));
        expect((await run(["import", path], target)).code).toBe(1);
        const other = applicationLine({ ...record, name: "till" });
        await writeFile(path, [first, other, "{}\n", rest.at(-1)].join(""));
        for (const flags of [["--dry-run"], []]) {
          const { code, stderr, stdout } = await run(["import", path, ...flags], target);
          expect(code).toBe(1);
          expect(stderr).toContain("latchkey: line 3: must have one member");
          expect(stderr).toContain(`latchkey: line 2: the application ${record.id} is there`);
          expect(stdout).toContain("bad lines     1");
        }
        await writeFile(path, [first, other, rest.at(-1)].join(""));
        expect((await run(["import", path, "--replace"], target)).code).toBe(0);
        const { applications } = await held(target);
        expect(applications.find(({ id }) => id === record.id)?.name).toBe("till");
      }),
    ));
});

describe.each(kinds)("an export of the %s store", (kind) => {
  it(
    "that was cut off anywhere is gone on with, and comes to the same",
    () =>
      withFolder((folder) =>
        withStore(kind, async (source) => {
          await withOpened(source, (store) => fill(store, Date.now));
          const whole = (await run(["export"], source)).stdout;
          const size = Buffer.byteLength(whole);
          // After the first line, the first application, the last one, a session and an event.
          const lines = [1, 2, 6, 7, 11].map((count) => endOfLine(whole, count));
          const cuts = [0, 10, ...lines, (lines[1] ?? 0) + 7, size - 9, size];
          for (const [at, cut] of cuts.entries()) {
            const path = join(folder, `${at}.ndjson`);
            await writeFile(`${path}.part`, Buffer.from(whole).subarray(0, cut));
            const { code, stderr } = await run(["export", "--output", path, "--resume"], source);
            expect(stderr).toMatch(/^exported 5 applications, 3 sessions and 3 events/);
            expect(code).toBe(0);
            expect(recordsIn(await readFile(path, "utf8"))).toEqual(recordsIn(whole));
            await expect(stat(`${path}.part`)).rejects.toThrow("ENOENT");
          }
        }),
      ),
    120_000,
  );

  it("leaves out events where it is asked to", () =>
    withStore(kind, async (source) => {
      await withOpened(source, (store) => fill(store, Date.now));
      const { stdout } = await run(["export", "--no-events"], source);
      expect(stdout).toContain('{"session":');
      expect(stdout).not.toContain('{"event":');
      expect(stdout).toContain('"events":0');
      await withFolder(async (folder) => {
        const path = join(folder, "a.ndjson");
        await writeFile(`${path}.part`, stdout.slice(0, -30));
        const resume = ["export", "--output", path, "--resume"];
        expect((await run(resume, source)).stderr).toContain("is one without events");
        expect((await run([...resume, "--no-events"], source)).code).toBe(0);
        expect(await readFile(path, "utf8")).toBe(stdout);
      });
    }));
});

describe("a store that holds no data yet", () => {
  async function expectEmpty(environment: Environment) {
    await withFolder(async (folder) => {
      const path = join(folder, "latchkey.ndjson");
      await writeFile(path, manyLines(3).lines.join(""));
      const { code, stdout } = await run(["import", path, "--dry-run"], environment);
      expect(code).toBe(0);
      expect(stdout).toContain("applications  3 added");
    });
  }

  it("is looked at as an empty one by a dry run, and its folder stays as it is", () =>
    withFolder(async (parent) => {
      const DATA_DIR = join(parent, "data");
      await expectEmpty({ DATA_DIR });
      await expect(stat(DATA_DIR)).rejects.toThrow("ENOENT");
    }));

  it("is looked at as an empty one by a dry run, and its database stays as it is", async () => {
    const db = mongo.createDatabase();
    await expectEmpty({ MONGODB_URI: uri, MONGODB_DATABASE: db.databaseName });
    expect(await db.listCollections().toArray()).toEqual([]);
  });
});

describe("what cannot be exported or imported is told in one clear line", () => {
  async function complaint(
    args: string[],
    environment: Environment,
    exitCode = 1,
  ): Promise<string> {
    const { code, stdout, stderr } = await run(args, environment);
    expect(code).toBe(exitCode);
    expect(stdout).toBe("");
    expect(stderr.split("\n")).toHaveLength(2);
    return stderr;
  }

  it("for files that are there, are of other data, or cannot be gone on with", () =>
    withFolder((folder) =>
      withStore("embedded", async (source) => {
        const path = join(folder, "a.ndjson");
        await withOpened(source, (store) => fill(store, Date.now));
        await run(["export", "--output", path], source);
        expect(await complaint(["export", "--output", path], source)).toMatch(
          /^latchkey: .*a\.ndjson is there already: remove it, or choose another name\.\n$/,
        );
        const begun = join(folder, "b.ndjson");
        const text = await readFile(path, "utf8");
        await writeFile(`${begun}.part`, text);
        expect(await complaint(["export", "--output", begun], source)).toContain("--resume");
        const choice = ["export", "--output", begun, "--resume", "--no-events"];
        expect(await complaint(choice, source)).toContain("is one with events");
        await withStore("embedded", async (other) => {
          expect(await complaint(["export"], other)).toContain("has no data");
          await withOpened(other, async () => {});
          const line = await complaint(["export", "--output", begun, "--resume"], other);
          expect(line).toContain("is of other data");
        });
        await writeFile(`${begun}.part`, "something else\n");
        const line = await complaint(["export", "--output", begun, "--resume"], source);
        expect(line).toContain("remove it, and export anew");
        expect(await complaint(["export", "--resume"], source, 2)).toContain("--output");
      }),
    ));

  it("for files that are missing, no export, or hashed with another pepper", () =>
    withFolder((folder) =>
      withStore("embedded", async (target) => {
        const path = join(folder, "a.ndjson");
        expect(await complaint(["import", path], target)).toMatch(
          /^latchkey: .*a\.ndjson cannot be read: ENOENT/,
        );
        expect(await complaint(["import", folder], target)).toContain("EISDIR");
        await writeFile(path, "something else\n");
        expect(await complaint(["import", path], target)).toMatch(
          /^latchkey: .*a\.ndjson: It is no export/,
        );
        await withOpened(target, async () => {});
        const { stdout } = await run(["export"], target);
        await writeFile(path, stdout);
        const other = { ...target, KEY_PEPPER: "a pepper of somebody else" };
        expect(await complaint(["import", path], other)).toContain("KEY_PEPPER");
      }),
    ));

  it("for an export that nobody reads to its end", () =>
    withStore("embedded", async (source) => {
      await withOpened(source, (store) =>
        store.transfer.importApplications(
          times(3_000, () => anImportedApplication({ expiresAt: Date.now() + hour })),
          { replace: false, dryRun: false },
        ),
      );
      const command = start(["export"], source);
      command.child.stdout?.destroy();
      expect(await command.ended()).toBe(1);
      expect(command.output.stderr).toMatch(/^latchkey: .*EPIPE.*\n$/);
    }));
});

describe("the worked example in docs/moving.md", () => {
  it("moves a key of another system, which then works", () =>
    withFolder((folder) =>
      withFolder(async (DATA_DIR) => {
        const page = await readFile("docs/moving.md", "utf8");
        const [, script = ""] = /<!-- worked example -->\n```sh\n(.*?)```/s.exec(page) ?? [];
        const command = `${process.execPath} ${resolve(latchkeyPath)}`;
        const { stdout } = await promisify(execFile)(
          "bash",
          ["-euo", "pipefail", "-c", script.replaceAll("npx latchkey", command)],
          { cwd: folder, env: { PATH: process.env.PATH, DATA_DIR } },
        );
        expect(stdout.match(/^applications {2}1 added$/gm)).toHaveLength(2);
        const [, key = ""] = /^key=(\S+)/.exec(script) ?? [];
        await withOpened({ DATA_DIR }, async (store) => {
          const identify = createIdentify(store, createKeyring([""], { foreignKeys: true }));
          expect(await identify(key)).toMatchObject({ application: { name: "Checkout backend" } });
        });
      }),
    ));
});
