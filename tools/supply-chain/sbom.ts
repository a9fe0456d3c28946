/**
 * Writes the bill of materials of what runs in production, as CycloneDX, to
 * the file that is named, or to sbom.cdx.json.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { type Bom, productionPart } from "./bom.js";
import { readLockfile, readManifest } from "./lockfile.js";

const path = process.argv[2] ?? "sbom.cdx.json";
const kinds = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
const whole: Bom = JSON.parse(
  execFileSync("npm", ["sbom", ...kinds], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 64 * 1024 * 1024,
  }),
);
const bom = productionPart(whole, readLockfile(), readManifest());
writeFileSync(path, `${JSON.stringify(bom, undefined, 2)}\n`);
console.log(`${path}: ${bom.components.length} packages`);
