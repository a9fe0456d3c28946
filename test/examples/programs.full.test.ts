import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { createRestApi } from "../support/api/rest.js";
import { useService } from "../support/service/service-process.js";

describe("guard examples", () => {
  const latchkey = useService();

  /** Runs an example and returns its output lines. */
  async function runExample(name: string): Promise<string[]> {
    const { url, firstKey: key } = latchkey;
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ["--import", "tsx", `examples/${name}.ts`],
      { env: { PATH: process.env.PATH, SVC_API_KEY: key, LATCHKEY_URL: url } },
    );
    expect(stderr).toBe("");
    expect(stdout).not.toContain("lk_");
    const remaining = await createRestApi(url).listApplications(key);
    expect(remaining.data.map((application) => application.name)).toEqual(["Bootstrap"]);
    return stdout.trimEnd().split("\n");
  }

  const lines = (...starts: string[]) => starts.map((start) => expect.stringContaining(start));

  it.each(["express", "fastify"])("run with %s", async (name) => {
    expect(await runExample(name)).toEqual(
      lines(
        'GET /pci/card-4242: 200 {"id":"card-4242","shown":"mask"}',
        'GET /pii/email-7: 403 The rules of the private application "Invoices"',
        "GET /pci/card-4242: 401 The request has no key",
        "The caller is deleted.",
        "GET /pci/card-4242: 401 The key is not valid",
      ),
    );
  });

  it("run with grpc-js", async () => {
    expect(await runExample("grpc")).toEqual(
      lines(
        'Read card-4242: OK {"id":"card-4242","shown":"mask"}',
        'Read email-7: PERMISSION_DENIED The rules of the private application "Invoices"',
        "Read card-4242: UNAUTHENTICATED The request has no key",
        "The caller is deleted.",
        "Read card-4242: UNAUTHENTICATED The key is not valid",
      ),
    );
  });

  it("run with Connect", async () => {
    expect(await runExample("connect")).toEqual(
      lines(
        "Transform for /pci/: mask",
        "Check /pci/: good",
        'Check /pii/: [permission_denied] The rules of the private application "Invoices"',
        "Check /pci/: [unauthenticated] The request has no key",
        "The caller is deleted.",
        "Check /pci/: [unauthenticated] The key is not valid",
      ),
    );
  });
});
