import { execFileSync, spawnSync } from "node:child_process";
import { chmod, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, jest } from "@jest/globals";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { itIf } from "../support/jest/suite.js";
import { runLatchkey, withTempFolder } from "../support/service/process.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { commandBoundByModes } from "./support/bound-by-modes.js";
import { useEmbeddedServices } from "./support/embedded-service.js";

jest.setTimeout(2 * hangTimeout);

const start = useEmbeddedServices();
const startService = useServices();

/** Rules that take several pages of the store, so that few applications fill it. */
const rules = Array.from({ length: 20 }, (_, at) => ({
  description: "x".repeat(200),
  priority: at + 1,
  container: "/pci/",
  transform: "mask",
  permissions: ["token:read"],
}));
const request = { name: "large", type: "private", permissions: ["token:read"], rules };

/** Keeps the files of a running process from growing beyond a size, as a full disk does. */
function limitFiles(pid: number, size: number | "unlimited"): void {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${size}:`]);
}

async function createUntilRefused(
  api: Api,
  key: string,
): Promise<{ made: string[]; refused: ApiFailure }> {
  const made: string[] = [];
  for (;;) {
    const outcome = await api.createApplication(key, request).catch((error) => error);
    if (outcome instanceof ApiFailure) {
      return { made, refused: outcome };
    }
    made.push(keyOf(outcome));
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
      // Each limit ends at another place in a page or a record.
      for (const room of [50_000, 60_001, 70_500]) {
        limitFiles(child.pid as number, size + room + all.length * 10_000);
        const { made, refused } = await createUntilRefused(api, manager);
        all.push(...made);
        expect(refused).toMatchObject({ reason: "store_unavailable", status: 503 });
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

describe("a read-only data folder", () => {
  const command = commandBoundByModes();
  const bound = { prefix: command ?? [] };
  const title =
    "fails the start with one line, does not affect a running service, and loses no data";
  const whyNot = "setpriv is missing, and root can write everywhere";
  itIf(command !== undefined, title, whyNot, () =>
    withTempFolder(async (folder) => {
      const environment = { DATA_DIR: folder, PORT: "0" };
      const { url, firstKey, process: first } = await startService(environment, bound);
      await chmod(folder, 0o500);
      try {
        const made = keyOf(await createRestApi(url).createApplication(firstKey, request));

        const second = runLatchkey(["serve"], environment, bound);
        expect(await second.ended()).toBe(1);
        expect(second.output.stdout).toBe("");
        expect(second.output.stderr).toMatch(
          /^latchkey: The data folder .+ cannot be used \(.*\): choose one that this process may read and write.*\n$/,
        );
        first.child.kill("SIGTERM");
        expect(await first.ended()).toBe(0);

        await chmod(folder, 0o700);
        const again = createRestApi((await startService(environment, bound)).url);
        expect(await again.whoAmI(made)).toMatchObject({ name: "large" });
      } finally {
        // An ordinary user cannot remove what is in it otherwise.
        await chmod(folder, 0o700);
      }
    }),
  );
});
