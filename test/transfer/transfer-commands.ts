import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect } from "@jest/globals";
import { createAuthenticate } from "../../src/auth/authenticate.js";
import { readSettings } from "../../src/config/settings.js";
import { openStore } from "../../src/store/open-store.js";
import type { ImportedApplication } from "../../src/store/port/transfer.js";
import { applicationLine, endLine, headerLine } from "../../src/transfer/export.js";
import { times } from "../contract/store/fixtures.js";
import {
  anImportedApplication,
  contentsOf,
  exportAll,
  fill,
  type Holdings,
  keyring,
} from "../contract/store/transfer-fixtures.js";
import { useMongo } from "../support/mongo/mongo.js";
import { uri } from "../support/mongo/uri.js";
import { type LatchkeyProcess, runLatchkey, withTempFolder } from "../support/service/process.js";
import { until } from "../support/until.js";

/** The settings of a store of its own. */
export type Environment = Readonly<Record<string, string>>;

export const kinds = ["embedded", "mongodb"] as const;
type Kind = (typeof kinds)[number];

/** The pepper of the keys that the stores are filled with. */
const KEY_PEPPER = "a pepper of these tests";

/** Opens a store here, beside the processes that use it. */
export async function withOpened<T>(
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

export const held = (environment: Environment): Promise<Holdings> =>
  withOpened(environment, (store) => exportAll(store, 1_000));

/** The lines of an export but the first, which tells when it was made. */
export function recordsIn(text: string): string[] {
  return text.split("\n").slice(1);
}

/** How many bytes so many lines have. */
export function endOfLine(text: string, count: number): number {
  return Buffer.byteLength(`${text.split("\n").slice(0, count).join("\n")}\n`);
}

/** An export of many applications. */
export function manyLines(count: number): { records: ImportedApplication[]; lines: string[] } {
  const records = times(count, () => anImportedApplication({ permissions: ["token:read"] }));
  const counts = { applications: count, sessions: 0, events: 0 };
  return { records, lines: [headerLine({}), ...records.map(applicationLine), endLine(counts)] };
}

/** Runs the commands that move data, in processes that end with their test, on stores of their own. */
export function useTransfer() {
  const mongo = useMongo();
  const running: LatchkeyProcess[] = [];

  afterEach(() => {
    for (const { child } of running.splice(0)) {
      child.kill("SIGKILL");
    }
  });

  async function withStore<T>(
    kind: Kind,
    use: (environment: Environment) => Promise<T>,
  ): Promise<T> {
    if (kind === "mongodb") {
      const { databaseName } = mongo.createDatabase();
      return use({ KEY_PEPPER, MONGODB_URI: uri, MONGODB_DATABASE: databaseName });
    }
    return withTempFolder((DATA_DIR) => use({ KEY_PEPPER, DATA_DIR }));
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

  /** Moves an installation by file and by pipe, and expects it to be there whole, with keys that work. */
  function expectMove(from: Kind, to: Kind): Promise<void> {
    return withTempFolder((folder) =>
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
            const identify = createAuthenticate(store, keyring, "held");
            for (const key of keys) {
              expect(await identify(key)).toBeDefined();
            }
          });

          const again = start(["import", "-"], target);
          again.child.stdin?.end(piped.stdout);
          expect(await again.ended()).toBe(0);
          expect(again.output.stdout).toContain("0 added, 5 already there");
        });
      }),
    );
  }

  /** Kills an import halfway, and expects the next to finish it. */
  function expectFinishedImport(kind: Kind): Promise<void> {
    return withTempFolder((folder) =>
      withStore(kind, async (target) => {
        const { records, lines } = manyLines(2_000);
        const halfway = start(["import", "-"], target);
        // It is killed before it has read all of it.
        halfway.child.stdin?.on("error", () => {});
        halfway.child.stdin?.write(lines.slice(0, 1_100).join(""));
        await withOpened(target, (store) =>
          until(async () => !(await store.applications.isEmpty())),
        );
        halfway.child.kill("SIGKILL");
        await halfway.ended();

        const path = join(folder, "latchkey.ndjson");
        await writeFile(path, lines.join(""));
        const { code, stdout } = await run(["import", path], target);
        expect(code).toBe(0);
        const [, added = "", there = ""] = /(\d+) added, (\d+) already there/.exec(stdout) ?? [];
        expect(Number(there)).toBeGreaterThan(0);
        expect(Number(added) + Number(there)).toBe(2_000);
        const { applications } = await held(target);
        expect(applications.map(({ id }) => id)).toEqual(records.map(({ id }) => id).sort());
      }),
    );
  }

  return { mongo, withStore, start, run, expectMove, expectFinishedImport };
}
