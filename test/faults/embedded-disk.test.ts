import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { chmod, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, jest } from "@jest/globals";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { itIf } from "../support/jest/suite.js";
import { runLatchkey, withTempFolder } from "../support/service/run-latchkey.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { useEmbeddedServices } from "./support/embedded-service.js";

jest.setTimeout(2 * hangTimeout);

const start = useEmbeddedServices();
const startService = useServices();

/** Rules that fill several pages of the store, so that few applications fill the disk. */
const rules = Array.from({ length: 20 }, (_, at) => ({
  description: "x".repeat(200),
  priority: at + 1,
  container: "/pci/",
  transform: "mask",
  permissions: ["token:read"],
}));
const request = { name: "large", type: "private", permissions: ["token:read"], rules };

/** Limits the size of files that a process can write, as a full disk does. */
function limitFiles(pid: number, size: number | "unlimited"): void {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${size}:`]);
}

async function createUntilRefused(
  api: Api,
  key: string,
): Promise<{ created: string[]; error: ApiFailure }> {
  const created: string[] = [];
  for (;;) {
    const outcome = await api.createApplication(key, request).catch((error) => error);
    if (outcome instanceof ApiFailure) {
      return { created, error: outcome };
    }
    created.push(keyOf(outcome));
  }
}

describe("a service whose disk is full", () => {
  const title = "refuses writes with 503, continues to read, and writes again when space is free";
  const canLimit = spawnSync("prlimit", ["--version"]).status === 0;
  itIf(canLimit, title, "prlimit is missing", () =>
    withTempFolder(async (folder) => {
      const service = await start(folder);
      const { child, output } = service.process;
      const api = createRestApi(service.url);
      const manager = service.firstKey;
      const { size } = await stat(join(folder, "data.mdb"));
      const all: string[] = [];
      // Each limit falls on a different place in a page or a record.
      for (const space of [50_000, 60_001, 70_500]) {
        limitFiles(child.pid as number, size + space + all.length * 10_000);
        const { created, error } = await createUntilRefused(api, manager);
        all.push(...created);
        expect(error).toMatchObject({ reason: "store_unavailable", status: 503 });
        for (const key of all) {
          expect(await api.whoAmI(key)).toBeDefined();
        }
        expect((await fetch(`${service.url}/healthz`)).status).toBe(200);

        limitFiles(child.pid as number, "unlimited");
        all.push(keyOf(await api.createApplication(manager, request)));
      }
      await until(async () => output.stdout.includes("Free space on its disk"));

      await service.kill();
      const again = createRestApi((await start(folder)).url);
      for (const key of all) {
        expect(await again.whoAmI(key)).toBeDefined();
      }
    }),
  );
});

/**
 * Returns a command prefix under which file modes apply: none for an ordinary
 * user, and for root one that drops the capability to override them. Undefined
 * if root cannot drop it.
 */
function findUnprivilegedPrefix(): readonly string[] | undefined {
  return [[], ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]].find(
    (prefix) => !canWriteToReadOnlyFolder(prefix),
  );
}

/** Whether a command can write to a read-only folder, or cannot be run at all. */
function canWriteToReadOnlyFolder(prefix: readonly string[]): boolean {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-modes-"));
  try {
    writeFileSync(join(folder, "existing"), "");
    chmodSync(folder, 0o500);
    const script = 'test -e "$1/existing" && ! touch "$1/new" 2>/dev/null';
    const [command = "", ...args] = [...prefix, "sh", "-c", script, "sh", folder];
    return spawnSync(command, args).status !== 0;
  } finally {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true });
  }
}

describe("a read-only data folder", () => {
  const prefix = findUnprivilegedPrefix();
  const unprivileged = { prefix: prefix ?? [] };
  const title =
    "fails the start with one line, does not affect a running service, and loses no data";
  const reason = "setpriv is missing, and root can write everywhere";
  itIf(prefix !== undefined, title, reason, () =>
    withTempFolder(async (folder) => {
      const environment = { DATA_DIR: folder, PORT: "0" };
      const { url, firstKey, process: first } = await startService(environment, unprivileged);
      await chmod(folder, 0o500);
      try {
        const key = keyOf(await createRestApi(url).createApplication(firstKey, request));

        const second = runLatchkey(["serve"], environment, unprivileged);
        expect(await second.ended()).toBe(1);
        expect(second.output.stdout).toBe("");
        expect(second.output.stderr).toMatch(
          /^latchkey: The data folder .+ cannot be used \(.*\): set DATA_DIR to a folder that this process can read and write.*\n$/,
        );
        first.child.kill("SIGTERM");
        expect(await first.ended()).toBe(0);

        await chmod(folder, 0o700);
        const again = createRestApi((await startService(environment, unprivileged)).url);
        expect(await again.whoAmI(key)).toMatchObject({ name: "large" });
      } finally {
        // An ordinary user cannot delete its files otherwise.
        await chmod(folder, 0o700);
      }
    }),
  );
});
