import { describe, expect, it } from "@jest/globals";
import { parseAudit, parseSignatures } from "../../tools/supply-chain/audit.js";
import {
  findLockfileProblems,
  type Lockfile,
  type Manifest,
  readLockfile,
  readManifest,
} from "../../tools/supply-chain/lockfile.js";

const lock = readLockfile();
const manifest = readManifest();

describe("the lockfile", () => {
  it("has a version and a hash for each package, and names no registry", () => {
    expect(findLockfileProblems(lock, manifest)).toEqual([]);
  });

  const changed = (at: string, change: object): Lockfile => ({
    ...lock,
    packages: { ...lock.packages, [at]: { ...lock.packages[at], ...change } },
  });
  const pino = "node_modules/pino";
  const faulty: [what: string, Lockfile, Manifest, fault: string][] = [
    ["a hash that is missing", changed(pino, { integrity: undefined }), manifest, "no sha512"],
    ["a weak hash", changed(pino, { integrity: "sha1-abc=" }), manifest, "no sha512"],
    [
      "a host",
      changed(pino, { resolved: "https://a.example/p.tgz" }),
      manifest,
      "has a resolved URL",
    ],
    ["a link", changed(pino, { link: true }), manifest, "is a link"],
    ...["git+ssh://git@a.example/x.git", "https://a.example/x.tgz", "file:../x", "a/b"].map(
      (from): (typeof faulty)[number] => [
        `a dependency from ${from}`,
        changed(pino, { dependencies: { x: from } }),
        manifest,
        "which is not a registry",
      ],
    ),
    [
      "other dependencies than package.json",
      lock,
      { ...manifest, dependencies: { ...manifest.dependencies, left: "1.0.0" } },
      "the dependencies differ from package.json",
    ],
    [
      "a range in package.json",
      lock,
      { ...manifest, dependencies: { ...manifest.dependencies, pino: "^10.0.0" } },
      "which is not an exact version",
    ],
    [
      "an install script that nobody decided on",
      changed(pino, { hasInstallScript: true }),
      manifest,
      "missing from allowScripts",
    ],
    [
      "a decision on what has no install script",
      lock,
      { ...manifest, allowScripts: { ...manifest.allowScripts, pino: true } },
      "which has no install script",
    ],
    ["another version of itself", { ...lock, lockfileVersion: 2 }, manifest, "is 2, not 3"],
  ];

  it.each(faulty)("is refused with %s", (_what, lock, manifest, fault) => {
    expect(findLockfileProblems(lock, manifest).join("\n")).toContain(fault);
  });
});

describe("the audit", () => {
  it("passes without findings", () => {
    const report = { metadata: {}, vulnerabilities: { a: { severity: "moderate" } } };
    expect(parseAudit(JSON.stringify(report))).toEqual({
      passed: "no high or critical vulnerabilities, 1 of lower severity",
    });
  });

  it.each([
    ['{"invalid":[],"missing":[]}', { passed: "all signatures are valid" }],
    [
      '{"invalid":[{"name":"a","version":"1.0.0"}],"missing":[]}',
      { failed: ["a@1.0.0 has an invalid signature"] },
    ],
    [
      '{"invalid":[],"missing":[{"name":"a","version":"1.0.0"}]}',
      { failed: ["a@1.0.0 has no signature"] },
    ],
    ['{"error":{"summary":"no such host"}}', { unreachable: "no such host" }],
    ["", { unreachable: "npm returned no readable output" }],
  ])("reports signatures as %s", (report, verdict) => {
    expect(parseSignatures(report)).toEqual(verdict);
  });
});
