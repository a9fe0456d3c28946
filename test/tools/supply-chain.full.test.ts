import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { packagesIn, readLockfile, readManifest } from "../../tools/supply-chain/lockfile.js";
import type { Bom } from "../../tools/supply-chain/sbom.js";
import { withTempFolder } from "../support/service/run-latchkey.js";

const run = promisify(execFile);
const lock = readLockfile();
const manifest = readManifest();

describe("the audit", () => {
  /** Runs the audit against a fake registry with this response. */
  const audit = (status: number, advisories: object, ...args: string[]) =>
    withTempFolder((cache) => auditWith(cache, status, advisories, args));

  async function auditWith(cache: string, status: number, advisories: object, args: string[]) {
    const registry = createServer((request, response) => {
      response.statusCode = request.url?.endsWith("/advisories/bulk") ? status : 404;
      response.end(JSON.stringify(advisories));
    });
    registry.listen(0, "127.0.0.1");
    await once(registry, "listening");
    const { port } = registry.address() as AddressInfo;
    const env = {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_cache: cache,
    };
    const command = [
      "--import",
      "tsx",
      "tools/supply-chain/check-audit.ts",
      "vulnerabilities",
      ...args,
    ];
    const result = await run(process.execPath, command, { env }).then(
      ({ stdout }) => ({ code: 0, output: stdout }),
      ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
    );
    registry.close();
    return result;
  }
  const advisory = {
    id: 1,
    url: "a",
    title: "It leaks",
    severity: "high",
    vulnerable_versions: "*",
  };

  it("fails on a severe vulnerability and names it", async () => {
    const { code, output } = await audit(200, { pino: [advisory] }, "--allow-unreachable");
    expect(output).toContain("npm audit: pino: high, via It leaks (a)");
    expect(code).toBe(1);
  });

  it("reports an unreachable registry, and fails unless --allow-unreachable is given", async () => {
    const { code, output } = await audit(405, {});
    expect(output).toContain("npm audit: NOT CHECKED, the registry is unreachable: 405");
    expect(output).not.toContain("http://");
    expect(code).toBe(1);
    expect(await audit(405, {}, "--allow-unreachable")).toEqual({ code: 0, output });
  });
});

it("the bill of materials lists every production dependency, and nothing else, with hashes", () =>
  withTempFolder(async (folder) => {
    const path = join(folder, "bom.json");
    await run(process.execPath, ["--import", "tsx", "tools/supply-chain/sbom.ts", path]);
    const bom: Bom = JSON.parse(await readFile(path, "utf8"));

    expect(bom).toMatchObject({
      bomFormat: "CycloneDX",
      specVersion: expect.stringMatching(/^1\.[5-9]$/),
      serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f-]{36}$/),
      version: 1,
      metadata: { component: { type: "application", name: "latchkey" } },
    });
    const production = packagesIn(lock).filter(({ dev }) => !dev);
    const decodeHash = (integrity = "") => Buffer.from(integrity.slice("sha512-".length), "base64");
    const listed = bom.components.map(({ name, version, purl, hashes, type }) => {
      expect({ type, purl: decodeURIComponent(purl) }).toEqual({
        type: "library",
        purl: `pkg:npm/${name}@${version}`,
      });
      return { name, version, hash: hashes?.[0]?.content };
    });
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    expect(listed.sort(byName)).toEqual(
      production
        .map(({ name, version, integrity }) => ({
          name,
          version,
          hash: decodeHash(integrity).toString("hex"),
        }))
        .sort(byName),
    );
    const refs = bom.components.map((component) => component["bom-ref"]);
    const root = bom.metadata.component["bom-ref"];
    expect(bom.dependencies.map(({ ref }) => ref).sort()).toEqual([...refs, root].sort());
    expect(bom.dependencies.find(({ ref }) => ref === root)?.dependsOn).toHaveLength(
      Object.keys(manifest.dependencies ?? {}).length,
    );
  }));
