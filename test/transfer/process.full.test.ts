import { execFile } from "node:child_process";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, jest } from "@jest/globals";
import { createAuthenticate } from "../../src/auth/authenticate.js";
import { createKeyring } from "../../src/auth/keys.js";
import { applicationLine } from "../../src/transfer/export.js";
import { hour, times } from "../contract/store/fixtures.js";
import { anImportedApplication, seedStore } from "../contract/store/transfer-fixtures.js";
import { uri } from "../support/mongo/uri.js";
import { latchkeyPath, withTempFolder } from "../support/service/run-latchkey.js";
import {
  createExport,
  type Environment,
  kinds,
  linesAfterHeader,
  readStore,
  sizeOfLines,
  useTransfer,
  withOpenStore,
} from "./transfer-commands.js";

jest.setTimeout(300_000);

const { mongo, withStore, start, run, expectMove, expectImportAfterKill } = useTransfer();

describe("a move from MongoDB to the embedded store", () => {
  it("is complete, with working keys, by file and by pipe", () =>
    expectMove("mongodb", "embedded"));
});

describe("an import into MongoDB", () => {
  it("is completed by the next one if it was killed", () => expectImportAfterKill("mongodb"));
});

describe.each(kinds)("an import into the %s store", (kind) => {
  it("exits with 1 and reports invalid lines and conflicts", () =>
    withTempFolder((folder) =>
      withStore(kind, async (target) => {
        const path = join(folder, "latchkey.ndjson");
        const record = anImportedApplication({ permissions: ["token:read"] });
        const [first = "", ...rest] = createExport(1).lines;
        await writeFile(path, [first, applicationLine(record), ...rest].join(""));
        expect((await run(["import", path], target)).code).toBe(1);
        const other = applicationLine({ ...record, name: "till" });
        await writeFile(path, [first, other, "{}\n", rest.at(-1)].join(""));
        for (const flags of [["--dry-run"], []]) {
          const { code, stderr, stdout } = await run(["import", path, ...flags], target);
          expect(code).toBe(1);
          expect(stderr).toContain("latchkey: line 3: must have one member");
          expect(stderr).toContain(`latchkey: line 2: the application ${record.id} already exists`);
          expect(stdout).toContain("invalid lines 1");
        }
        const { stdout } = await run(["import", path, "--json"], target);
        expect(JSON.parse(stdout)).toMatchObject({
          applications: { differs: 1 },
          invalid_lines: 1,
          dry_run: false,
        });
        await writeFile(path, [first, other, rest.at(-1)].join(""));
        expect((await run(["import", path, "--replace"], target)).code).toBe(0);
        const { applications } = await readStore(target);
        expect(applications.find(({ id }) => id === record.id)?.name).toBe("till");
      }),
    ));
});

describe.each(kinds)("an export of the %s store", (kind) => {
  it("is resumed with the same result wherever it was interrupted", () =>
    withTempFolder((folder) =>
      withStore(kind, async (source) => {
        await withOpenStore(source, (store) => seedStore(store, Date.now));
        const complete = (await run(["export"], source)).stdout;
        const size = Buffer.byteLength(complete);
        // After the first line, the first application, the last one, a session and an event.
        const lines = [1, 2, 6, 7, 11].map((count) => sizeOfLines(complete, count));
        const midLine = (lines[1] ?? 0) + 7;
        // Resuming is the same for both stores, so one of them is tested with fewer cuts.
        const cuts =
          kind === "embedded" ? [0, 10, ...lines, midLine, size - 9, size] : [midLine, size - 9];
        for (const [index, cut] of cuts.entries()) {
          const path = join(folder, `${index}.ndjson`);
          await writeFile(`${path}.part`, Buffer.from(complete).subarray(0, cut));
          const { code, stderr } = await run(["export", "--output", path, "--resume"], source);
          expect(stderr).toMatch(/^exported 5 applications, 3 sessions and 12 events/);
          expect(code).toBe(0);
          expect(linesAfterHeader(await readFile(path, "utf8"))).toEqual(
            linesAfterHeader(complete),
          );
          await expect(stat(`${path}.part`)).rejects.toThrow("ENOENT");
        }
      }),
    ));

  it("omits events with --no-events", () =>
    withStore(kind, async (source) => {
      await withOpenStore(source, (store) => seedStore(store, Date.now));
      const { stdout } = await run(["export", "--no-events"], source);
      expect(stdout).toContain('{"session":');
      expect(stdout).not.toContain('{"event":');
      expect(stdout).toContain('"events":0');
      await withTempFolder(async (folder) => {
        const path = join(folder, "a.ndjson");
        await writeFile(`${path}.part`, stdout.slice(0, -30));
        const resume = ["export", "--output", path, "--resume"];
        expect((await run(resume, source)).stderr).toContain("is without events");
        expect((await run([...resume, "--no-events"], source)).code).toBe(0);
        expect(await readFile(path, "utf8")).toBe(stdout);
      });
    }));
});

describe("a store without data", () => {
  async function expectEmpty(environment: Environment) {
    await withTempFolder(async (folder) => {
      const path = join(folder, "latchkey.ndjson");
      await writeFile(path, createExport(3).lines.join(""));
      const { code, stdout } = await run(["import", path, "--dry-run"], environment);
      expect(code).toBe(0);
      expect(stdout).toContain("applications  3 added");
    });
  }

  it("is treated as empty by a dry run, and its folder stays unchanged", () =>
    withTempFolder(async (parent) => {
      const DATA_DIR = join(parent, "data");
      await expectEmpty({ DATA_DIR });
      await expect(stat(DATA_DIR)).rejects.toThrow("ENOENT");
    }));

  it("is treated as empty by a dry run, and its database stays unchanged", async () => {
    const db = mongo.createDatabase();
    await expectEmpty({ MONGODB_URI: uri, MONGODB_DATABASE: db.databaseName });
    expect(await db.listCollections().toArray()).toEqual([]);
  });
});

describe("a failing export or import", () => {
  async function runFailing(
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

  it("prints one clear line for files that exist, have other data, or cannot be resumed", () =>
    withTempFolder((folder) =>
      withStore("embedded", async (source) => {
        const path = join(folder, "a.ndjson");
        await withOpenStore(source, (store) => seedStore(store, Date.now));
        await run(["export", "--output", path], source);
        expect(await runFailing(["export", "--output", path], source)).toMatch(
          /^latchkey: .*a\.ndjson already exists\. Remove it, or choose another name\.\n$/,
        );
        const partial = join(folder, "b.ndjson");
        const text = await readFile(path, "utf8");
        await writeFile(`${partial}.part`, text);
        expect(await runFailing(["export", "--output", partial], source)).toContain("--resume");
        const choice = ["export", "--output", partial, "--resume", "--no-events"];
        expect(await runFailing(choice, source)).toContain("is with events");
        await withStore("embedded", async (other) => {
          expect(await runFailing(["export"], other)).toContain("No data found in");
          await withOpenStore(other, async () => {});
          const line = await runFailing(["export", "--output", partial, "--resume"], other);
          expect(line).toContain("is from another store");
        });
        await writeFile(`${partial}.part`, "something else\n");
        const line = await runFailing(["export", "--output", partial, "--resume"], source);
        expect(line).toContain("Remove it, and export again");
        expect(await runFailing(["export", "--resume"], source, 2)).toContain("--output");
      }),
    ));

  it("prints one clear line for files that are missing, not an export, or hashed with another pepper", () =>
    withTempFolder((folder) =>
      withStore("embedded", async (target) => {
        const path = join(folder, "a.ndjson");
        expect(await runFailing(["import", path], target)).toMatch(
          /^latchkey: Cannot read .*a\.ndjson: no such file or directory$/m,
        );
        expect(await runFailing(["import", folder], target)).toContain(
          "illegal operation on a directory",
        );
        await writeFile(path, "something else\n");
        expect(await runFailing(["import", path], target)).toMatch(
          /^latchkey: .*a\.ndjson: The file is not an export/,
        );
        await withOpenStore(target, async () => {});
        const { stdout } = await run(["export"], target);
        await writeFile(path, stdout);
        const other = { ...target, KEY_PEPPER: "a pepper of somebody else" };
        expect(await runFailing(["import", path], other)).toContain("KEY_PEPPER");
      }),
    ));

  it("says that an export is not complete if its reader closes the pipe", () =>
    withStore("embedded", async (source) => {
      await withOpenStore(source, (store) =>
        store.transfer.importApplications(
          times(3_000, () => anImportedApplication({ expiresAt: Date.now() + hour })),
          { replace: false, dryRun: false },
        ),
      );
      const command = start(["export"], source);
      command.child.stdout?.destroy();
      expect(await command.ended()).toBe(1);
      expect(command.output.stderr).toBe(
        "latchkey: Cannot write to stdout: its reader closed it.\nThe export is not complete.\n",
      );
    }));
});

describe("the worked example in docs/guides/move-data.md", () => {
  it("imports a working key of another system", () =>
    withTempFolder((folder) =>
      withTempFolder(async (DATA_DIR) => {
        const page = await readFile("docs/guides/move-data.md", "utf8");
        const [, script = ""] = /<!-- worked example -->\n```sh\n(.*?)```/s.exec(page) ?? [];
        const command = `'${process.execPath}' '${resolve(latchkeyPath)}'`;
        const { stdout } = await promisify(execFile)(
          "bash",
          ["-euo", "pipefail", "-c", script.replaceAll("npx latchkey", command)],
          { cwd: folder, env: { PATH: process.env.PATH, DATA_DIR } },
        );
        expect(stdout.match(/^applications {2}1 added$/gm)).toHaveLength(2);
        const [, key = ""] = /^key=(\S+)/.exec(script) ?? [];
        await withOpenStore({ DATA_DIR }, async (store) => {
          const authenticate = createAuthenticate(
            store,
            createKeyring([""], { importedKeys: true }),
            "held",
          );
          expect(await authenticate(key)).toMatchObject({
            application: { name: "Checkout backend" },
          });
        });
      }),
    ));
});
