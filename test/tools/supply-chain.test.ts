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
  it("has a version and a hash for each package and no registry URLs", () => {
    expect(findLockfileProblems(lock, manifest)).toEqual([]);
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
      "has a resolved URL",
    ],
    ["a link", changePackage(pino, { link: true }), manifest, "is a link"],
    ...["git+ssh://git@a.example/x.git", "https://a.example/x.tgz", "file:../x", "a/b"].map(
      (from): (typeof invalid)[number] => [
        `a dependency from ${from}`,
        changePackage(pino, { dependencies: { x: from } }),
        manifest,
        "which is not a registry",
      ],
    ),
    [
      "dependencies that differ from package.json",
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
      "an install script that allowScripts does not list",
      changePackage(pino, { hasInstallScript: true }),
      manifest,
      "missing from allowScripts",
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
    expect(findLockfileProblems(lock, manifest).join("\n")).toContain(message);
  });
});

describe("the audit", () => {
  it("passes without high or critical vulnerabilities", () => {
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
  ])("evaluates the signature report %s", (report, verdict) => {
    expect(parseSignatures(report)).toEqual(verdict);
  });
});
