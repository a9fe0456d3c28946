import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect } from "@jest/globals";
import { createAuthenticate } from "../../src/auth/authenticate.js";
import { readSettings } from "../../src/config/settings.js";
import { openStore } from "../../src/store/open-store.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import { applicationLine, endLine, headerLine } from "../../src/transfer/export.js";
import { times } from "../contract/store/fixtures.js";
import {
  anImportedApplication,
  exportAll,
  keyring,
  normalize,
  pepper,
  type StoreContents,
  seedStore,
} from "../contract/store/transfer-fixtures.js";
import { useMongo } from "../support/mongo/mongo.js";
import { uri } from "../support/mongo/uri.js";
import {
  type CapturedProcess,
  runLatchkey,
  withTempFolder,
} from "../support/service/run-latchkey.js";
import { type OperableStore, withOperations } from "../support/store/operations.js";
import { until } from "../support/until.js";

/** The settings of a store. */
export type Environment = Readonly<Record<string, string>>;

export const kinds = ["embedded", "mongodb"] as const;
type Kind = (typeof kinds)[number];

/** Opens a store in this process. */
export async function withOpenStore<T>(
  environment: Environment,
  use: (store: OperableStore) => Promise<T>,
): Promise<T> {
  const store = withOperations(await openStore(readSettings(environment)));
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

export const readStore = (environment: Environment): Promise<StoreContents> =>
  withOpenStore(environment, (store) => exportAll(store, 1_000));

/** The lines of an export without the header, which has the time of the export. */
export function linesAfterHeader(text: string): string[] {
  return text.split("\n").slice(1);
}

/** The size in bytes of the first lines. */
export function sizeOfLines(text: string, count: number): number {
  return Buffer.byteLength(`${text.split("\n").slice(0, count).join("\n")}\n`);
}

/** An export of many applications. */
export function createExport(count: number): { records: ApplicationFields[]; lines: string[] } {
  const records = times(count, () => anImportedApplication({ permissions: ["token:read"] }));
  const counts = { applications: count, sessions: 0, events: 0 };
  return { records, lines: [headerLine({}), ...records.map(applicationLine), endLine(counts)] };
}

/** Runs export and import in processes, which are killed after each test. */
export function useTransfer() {
  const mongo = useMongo();
  const running: CapturedProcess[] = [];

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
      return use({ KEY_PEPPER: pepper, MONGODB_URI: uri, MONGODB_DATABASE: databaseName });
    }
    return withTempFolder((DATA_DIR) => use({ KEY_PEPPER: pepper, DATA_DIR }));
  }

  function start(args: string[], environment: Environment): CapturedProcess {
    const started = runLatchkey(args, environment);
    running.push(started);
    return started;
  }

  /** Runs a command until it exits. */
  async function run(args: string[], environment: Environment) {
    const { ended, output } = start(args, environment);
    return { code: await ended(), ...output };
  }

  /** Moves all data by file and by pipe, and expects complete data and working keys. */
  function expectMove(from: Kind, to: Kind): Promise<void> {
    return withTempFolder((folder) =>
      withStore(from, async (source) => {
        const keys = await withOpenStore(source, (store) => seedStore(store, Date.now));
        const path = join(folder, "latchkey.ndjson");
        const exported = await run(["export", "--output", path], source);
        expect(exported).toMatchObject({ code: 0, stdout: "" });
        expect(exported.stderr).toMatch(
          /^exported 5 applications, 3 sessions and 12 events: .*\n$/,
        );
        expect((await stat(path)).mode & 0o077).toBe(0);
        const piped = await run(["export"], source);
        expect(piped).toMatchObject({ code: 0, stderr: "" });
        expect(linesAfterHeader(piped.stdout)).toEqual(
          linesAfterHeader(await readFile(path, "utf8")),
        );

        await withStore(to, async (target) => {
          const imported = await run(["import", path], target);
          expect(imported).toMatchObject({ code: 0, stderr: "" });
          expect(imported.stdout).toBe(
            "applications  5 added\nsessions      3 added\nevents        12 added\n",
          );
          expect(normalize(await readStore(target))).toEqual(normalize(await readStore(source)));
          await withOpenStore(target, async (store) => {
            const authenticate = createAuthenticate(store, keyring, "held");
            for (const key of keys) {
              expect(await authenticate(key)).toBeDefined();
            }
          });

          const again = start(["import", "-"], target);
          again.child.stdin?.end(piped.stdout);
          expect(await again.ended()).toBe(0);
          expect(again.output.stdout).toContain("0 added, 5 unchanged");
        });
      }),
    );
  }

  /** Kills an import halfway, and expects the next import to complete it. */
  function expectImportAfterKill(kind: Kind): Promise<void> {
    return withTempFolder((folder) =>
      withStore(kind, async (target) => {
        const { records, lines } = createExport(2_000);
        const halfway = start(["import", "-"], target);
        // The process is killed before it has read all input.
        halfway.child.stdin?.on("error", () => {});
        halfway.child.stdin?.write(lines.slice(0, 1_100).join(""));
        await withOpenStore(target, (store) =>
          until(async () => !(await store.applications.isEmpty())),
        );
        halfway.child.kill("SIGKILL");
        await halfway.ended();

        const path = join(folder, "latchkey.ndjson");
        await writeFile(path, lines.join(""));
        const { code, stdout } = await run(["import", path], target);
        expect(code).toBe(0);
        const [, added = "", existing = ""] = /(\d+) added, (\d+) unchanged/.exec(stdout) ?? [];
        expect(Number(existing)).toBeGreaterThan(0);
        expect(Number(added) + Number(existing)).toBe(2_000);
        const { applications } = await readStore(target);
        expect(applications.map(({ id }) => id)).toEqual(records.map(({ id }) => id).sort());
      }),
    );
  }

  return { mongo, withStore, start, run, expectMove, expectImportAfterKill };
}
