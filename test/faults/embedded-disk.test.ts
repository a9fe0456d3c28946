import { execFileSync } from "node:child_process";
import { chmod, chown, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { type Api, ApiFailure, keyOf } from "../support/api.js";
import { createRestApi } from "../support/api-rest.js";
import { runLatchkey, withFolder } from "../support/process.js";
import { useServices } from "../support/service-process.js";
import { until } from "../support/until.js";
import { useEmbeddedServices } from "./support/embedded-service.js";

const start = useEmbeddedServices();
const startAs = useServices();

/** Takes as many pages as an application can. */
const rules = Array.from({ length: 20 }, (_, at) => ({
  description: "x".repeat(200),
  priority: at + 1,
  container: "/pci/",
  transform: "mask",
  permissions: ["token:read"],
}));
const request = { name: "large", type: "private", permissions: ["token:read"], rules };

/** Lets no file of a process that runs grow beyond so many bytes, as a disk does that is full. */
function limitFiles(pid: number, size: number | "unlimited"): void {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${size}:unlimited`]);
}

/** Linux alone can limit a process that runs, by `prlimit`; where it lacks that, the test fails. */
const itOnLinux = process.platform === "linux" ? it : it.skip;

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
  itOnLinux(
    "refuses writes with 503, says what to do, goes on to read, and writes again when there is room",
    () =>
      withFolder(async (folder) => {
        const service = await start(folder);
        const { child, output } = service.process;
        const api = createRestApi(service.url);
        const manager = service.firstKey;
        const { size } = await stat(join(folder, "data.mdb"));
        const all: string[] = [];
        // Wherever in a page or a record it ends.
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
        await until(async () => output.stdout.includes("Make room on its disk"), 5_000);

        await service.kill();
        const again = createRestApi((await start(folder)).url);
        for (const key of all) {
          expect(await again.whoAmI(key)).toBeDefined();
        }
      }),
    60_000,
  );
});

/** A user whom the modes of files bind, which they do not the superuser. */
const nobody = 65_534;
const isSuperuser = process.getuid?.() === 0;
const user = isSuperuser ? { uid: nobody, gid: nobody } : {};

describe("a data folder that may not be written", () => {
  it(
    "stops the start with one line, changes nothing for who runs already, and loses nothing",
    () =>
      withFolder(async (folder) => {
        if (isSuperuser) {
          await chown(folder, nobody, nobody);
        }
        const environment = { DATA_DIR: folder, PORT: "0" };
        const { url, firstKey, process: first } = await startAs(environment, user);
        await chmod(folder, 0o500);
        const made = keyOf(await createRestApi(url).createApplication(firstKey, request));

        const second = runLatchkey(["serve"], environment, user);
        expect(await second.ended()).toBe(1);
        expect(second.output.stdout).toBe("");
        expect(second.output.stderr).toMatch(
          /^latchkey: The data folder \S+ cannot be used \(.*\): choose one that this process may read and write.*\n$/,
        );
        first.child.kill("SIGTERM");
        expect(await first.ended()).toBe(0);

        await chmod(folder, 0o700);
        const again = createRestApi((await startAs(environment, user)).url);
        expect(await again.whoAmI(made)).toMatchObject({ name: "large" });
      }),
    60_000,
  );
});
