import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { type ServiceProcess, startService } from "./service-process.js";

type Environment = Readonly<Record<string, string>>;

/** Starts the service on a folder of its own before the tests of a file or a part of it, and ends it after them. */
export function useService(
  environment: Environment | (() => Promise<Environment>) = {},
): ServiceProcess {
  let folder: string;
  let service: ServiceProcess;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-service-"));
    const settings = typeof environment === "function" ? await environment() : environment;
    service = await startService({ DATA_DIR: folder, ...settings });
  });

  afterAll(async () => {
    service.process.child.kill("SIGTERM");
    await service.process.ended();
    await rm(folder, { recursive: true, force: true });
  });

  return {
    get url() {
      return service.url;
    },
    get port() {
      return service.port;
    },
    get firstKey() {
      return service.firstKey;
    },
    get process() {
      return service.process;
    },
  };
}
