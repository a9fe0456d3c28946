import { writeFile } from "node:fs/promises";
import { beforeAll, expect } from "@jest/globals";
import { useService } from "../support/service/service-process.js";
import { type RunOptions, useCli } from "./run-cli.js";

/** Runs a service, and commands with its first key. */
export function useAdminCli() {
  const service = useService();
  const cli = useCli();

  const adminEnvironment = () => ({ LATCHKEY_URL: service.url, LATCHKEY_KEY: service.firstKey });

  async function runAsAdmin(args: readonly string[], { environment, input }: RunOptions = {}) {
    const merged = { ...adminEnvironment(), ...environment };
    // Only another process has its own stdin.
    return input === undefined
      ? cli.runInProcess(args, merged)
      : cli.run(args, { environment: merged, input });
  }

  async function runJson(args: readonly string[], options: RunOptions = {}) {
    const { code, stdout, stderr } = await runAsAdmin([...args, "--json"], options);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n")).toHaveLength(2);
    return JSON.parse(stdout);
  }

  // biome-ignore lint/suspicious/noExplicitAny: it is JSON
  async function callRest(path: string, method = "GET"): Promise<any> {
    const headers = { "SVC-API-KEY": service.firstKey };
    const response = await fetch(`${service.url}${path}`, { method, headers });
    return response.status === 204 ? undefined : response.json();
  }

  return { service, cli, adminEnvironment, runAsAdmin, runJson, callRest };
}

/** Creates the applications "Backend" and "Web \u5e97". Their keys are in files. */
export function useBackendAndShop({
  cli,
  runAsAdmin,
  runJson,
}: Pick<ReturnType<typeof useAdminCli>, "cli" | "runAsAdmin" | "runJson">) {
  const backendKey = () => cli.path("backend.key");
  const shopKey = () => cli.path("shop.key");
  let backendId: string;

  beforeAll(async () => {
    const create = ["apps", "create"];
    const [backend, shop] = await Promise.all([
      runJson([
        ...create,
        "Backend",
        "--type",
        "private",
        "--permission",
        "token:read",
        "--output-key",
        backendKey(),
      ]),
      runAsAdmin([
        ...create,
        "Web \u5e97",
        "--type",
        "public",
        "--permission",
        "token:create",
        "--expires",
        "30d",
        "--key-only",
      ]),
    ]);
    backendId = backend.id;
    expect(backend.key).toBeUndefined();
    await writeFile(shopKey(), shop.stdout);
  });

  return { backendId: () => backendId, backendKey, shopKey };
}
