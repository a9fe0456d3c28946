/** Writes the CycloneDX SBOM of the production dependencies to a file, by default sbom.cdx.json. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import {
  type Lockfile,
  type Manifest,
  packagesIn,
  readLockfile,
  readManifest,
} from "./lockfile.js";

interface Component {
  readonly "bom-ref": string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/** The fields of a CycloneDX document that are used here. */
export interface Bom {
  readonly bomFormat: "CycloneDX";
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly version: number;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** npm sets this also on production packages that development tools share. */
const developmentProperty = "cdx:npm:package:development";

/**
 * Keeps the packages that the lockfile does not mark as development only. npm's
 * own filter also drops packages that production shares with development tools.
 */
function selectProduction(full: Bom, lock: Lockfile, { name = "" }: Manifest): Bom {
  const production = packagesIn(lock).filter(({ dev }) => !dev);
  const missing = new Set(production.map(({ name, version }) => `${name}@${version}`));
  const components = full.components
    .filter((component) => missing.delete(component["bom-ref"]))
    .map(({ properties = [], ...component }) => ({
      ...component,
      properties: properties.filter((property) => property.name !== developmentProperty),
    }));
  if (missing.size > 0) {
    throw new Error(`the SBOM of npm lacks ${[...missing].join(", ")}`);
  }
  const root = full.metadata.component;
  const refs = new Set([root, ...components].map((component) => component["bom-ref"]));
  return {
    ...full,
    // npm uses the name of the folder.
    metadata: { ...full.metadata, component: { ...root, name } },
    components,
    dependencies: full.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) })),
  };
}

const path = process.argv[2] ?? "sbom.cdx.json";
const options = ["--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
const full: Bom = JSON.parse(
  execFileSync("npm", ["sbom", ...options], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 64 * 1024 * 1024,
  }),
);
const bom = selectProduction(full, readLockfile(), readManifest());
writeFileSync(path, `${JSON.stringify(bom, undefined, 2)}\n`);
console.log(`${path}: ${bom.components.length} packages`);
