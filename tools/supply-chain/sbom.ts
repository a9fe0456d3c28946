import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import {
  type Lockfile,
  type Manifest,
  packagesIn,
  readLockfile,
  readManifest,
} from "./lockfile.js";

/**
 * Writes the bill of materials of what runs in production, as CycloneDX, to
 * the file that is named, or to sbom.cdx.json.
 */

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

interface Component {
  readonly "bom-ref": string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/** A bill of materials, as far as it is of interest here. */
export interface Bom {
  readonly bomFormat: "CycloneDX";
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly version: number;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** npm takes a package that a tool for development needs as well for one of development alone. */
const mark = "cdx:npm:package:development";

/**
 * The part of a bill that runs in production: what the lockfile does not mark
 * as for development. npm itself can leave out the rest, but leaves out
 * what tools and production share, too.
 */
export function productionPart(whole: Bom, lock: Lockfile, { name = "" }: Manifest): Bom {
  const production = packagesIn(lock).filter(({ dev }) => !dev);
  const wanted = new Set(production.map(({ name, version }) => `${name}@${version}`));
  const components = whole.components
    .filter((component) => wanted.delete(component["bom-ref"]))
    .map(({ properties = [], ...component }) => ({
      ...component,
      properties: properties.filter((property) => property.name !== mark),
    }));
  if (wanted.size > 0) {
    throw new Error(`npm's bill of materials lacks ${[...wanted].join(", ")}`);
  }
  const root = whole.metadata.component;
  const refs = new Set([root, ...components].map((component) => component["bom-ref"]));
  return {
    ...whole,
    // npm calls it by the folder that it lies in.
    metadata: { ...whole.metadata, component: { ...root, name } },
    components,
    dependencies: whole.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) })),
  };
}
