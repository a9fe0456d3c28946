import { describe, expect, it } from "@jest/globals";
import { auditVerdict, signaturesVerdict } from "../../tools/supply-chain/audit-verdict.js";
import {
  faultsOf,
  type Lockfile,
  type Manifest,
  readLockfile,
  readManifest,
} from "../../tools/supply-chain/lockfile.js";

const lock = readLockfile();
const manifest = readManifest();

describe("the lockfile", () => {
  it("has a version and a hash for each package and no registry URLs", () => {
    expect(faultsOf(lock, manifest)).toEqual([]);
  });

  const changePackage = (path: string, change: object): Lockfile => ({
    ...lock,
    packages: { ...lock.packages, [path]: { ...lock.packages[path], ...change } },
  });
  const pino = "node_modules/pino";
  const invalid: [name: string, Lockfile, Manifest, message: string][] = [
    ["a missing hash", changePackage(pino, { integrity: undefined }), manifest, "no sha512"],
    ["a weak hash", changePackage(pino, { integrity: "sha1-abc=" }), manifest, "no sha512"],
    [
      "a registry host",
      changePackage(pino, { resolved: "https://a.example/p.tgz" }),
      manifest,
      "where it is",
    ],
    ["a link", changePackage(pino, { link: true }), manifest, "is a link"],
    ...["git+ssh://git@a.example/x.git", "https://a.example/x.tgz", "file:../x", "a/b"].map(
      (from): (typeof invalid)[number] => [
        `a dependency from ${from}`,
        changePackage(pino, { dependencies: { x: from } }),
        manifest,
        "which is no registry",
      ],
    ),
    [
      "dependencies that differ from package.json",
      lock,
      { ...manifest, dependencies: { ...manifest.dependencies, left: "1.0.0" } },
      "other dependencies",
    ],
    [
      "a range in package.json",
      lock,
      { ...manifest, dependencies: { ...manifest.dependencies, pino: "^10.0.0" } },
      "which is not one version",
    ],
    [
      "an install script that allowScripts does not list",
      changePackage(pino, { hasInstallScript: true }),
      manifest,
      "allowScripts says nothing of",
    ],
    [
      "an allowScripts entry for a package without install script",
      lock,
      { ...manifest, allowScripts: { ...manifest.allowScripts, pino: true } },
      "which has no install script",
    ],
    ["another lockfile version", { ...lock, lockfileVersion: 2 }, manifest, "is 2, not 3"],
  ];

  it.each(invalid)("is refused with %s", (_name, lock, manifest, message) => {
    expect(faultsOf(lock, manifest).join("\n")).toContain(message);
  });
});

describe("the audit", () => {
  it("passes without high or critical vulnerabilities", () => {
    const report = { metadata: {}, vulnerabilities: { a: { severity: "moderate" } } };
    expect(auditVerdict(JSON.stringify(report))).toEqual({
      passed: "no high or critical finding, 1 of less",
    });
  });

  it.each([
    ['{"invalid":[],"missing":[]}', { passed: "all signatures are right" }],
    [
      '{"invalid":[{"name":"a","version":"1.0.0"}],"missing":[]}',
      { failed: ["a@1.0.0 has a signature that is wrong"] },
    ],
    [
      '{"invalid":[],"missing":[{"name":"a","version":"1.0.0"}]}',
      { failed: ["a@1.0.0 has no signature"] },
    ],
    ['{"error":{"summary":"no such host"}}', { unanswered: "no such host" }],
    ["", { unanswered: "npm said nothing that can be read" }],
  ])("evaluates the signature report %s", (report, verdict) => {
    expect(signaturesVerdict(report)).toEqual(verdict);
  });
});
