import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

/** An entry of package-lock.json. */
interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  /** Whether it is a development dependency only. */
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export interface Lockfile {
  readonly lockfileVersion: number;
  /** By path. The empty path is this package itself. */
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** The fields of package.json that are used here. */
export interface Manifest extends LockedPackage {
  /** The packages with install scripts, and whether each may run them. */
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

export const readLockfile = (): Lockfile => JSON.parse(readFileSync("package-lock.json", "utf8"));
export const readManifest = (): Manifest => JSON.parse(readFileSync("package.json", "utf8"));

/** Lists all packages except this one. */
export function packagesIn({ packages }: Lockfile): (LockedPackage & { name: string })[] {
  return Object.entries(packages)
    .filter(([path]) => path !== "")
    .map(([path, locked]) => ({ ...locked, name: locked.name ?? getName(path) }));
}

/** Packages can be nested, so the last part of the path counts. */
function getName(path: string): string {
  return path.split("node_modules/").at(-1) ?? "";
}

const dependencyKinds = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
] as const;

/** An exact version. With a range, a new lockfile could choose a version that was not reviewed. */
const exactVersion = /^\d+\.\d+\.\d+(-[\w.]+)?$/;
/** A version range of a registry, not a repository, URL or folder. */
const registryRange = /^(npm:(@[\w.-]+\/)?[\w.-]+@)?[\w\s.^~<>=|*+-]*$/;

/** Describes each problem of a lockfile in one line. */
export function findLockfileProblems(lock: Lockfile, manifest: Manifest): string[] {
  return [
    ...findMismatches(lock, manifest),
    ...packagesIn(lock).flatMap(findPackageProblems),
    ...findVersionRanges(manifest),
    ...findScriptProblems(lock, manifest),
  ];
}

function findMismatches({ lockfileVersion, packages }: Lockfile, manifest: Manifest): string[] {
  const locked = packages[""] ?? {};
  const problems = dependencyKinds
    .filter((kind) => !isDeepStrictEqual(locked[kind] ?? {}, manifest[kind] ?? {}))
    .map((kind) => `the ${kind} differ from package.json: run npm install`);
  return lockfileVersion === 3
    ? problems
    : [`the lockfile version is ${lockfileVersion}, not 3`, ...problems];
}

function findPackageProblems(locked: LockedPackage & { name: string }): string[] {
  const { name, version, integrity, resolved, link } = locked;
  const problems: string[] = [];
  if (link || version === undefined) {
    problems.push(`${name} is a link, not a registry version`);
  } else if (!integrity?.startsWith("sha512-")) {
    problems.push(`${name}@${version} has no sha512 integrity`);
  }
  if (resolved !== undefined) {
    problems.push(`${name}@${version} has a resolved URL: omit-lockfile-registry-resolved is off`);
  }
  for (const [dependency, range] of dependenciesOf(locked)) {
    if (!registryRange.test(range)) {
      problems.push(
        `${name}@${version} requires ${dependency} from ${range}, which is not a registry`,
      );
    }
  }
  return problems;
}

/** Peer dependencies are left out, because the consumer chooses their version. */
function dependenciesOf({ dependencies, devDependencies, optionalDependencies }: LockedPackage) {
  return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
}

function findVersionRanges(manifest: Manifest): string[] {
  return dependenciesOf(manifest)
    .filter(([, range]) => !exactVersion.test(range))
    .map(
      ([name, range]) => `package.json requires ${name} ${range}, which is not an exact version`,
    );
}

/** `allowScripts` must list exactly the packages with an install script. */
function findScriptProblems(lock: Lockfile, { allowScripts = {} }: Manifest): string[] {
  const withScripts = new Set(
    packagesIn(lock)
      .filter(({ hasInstallScript }) => hasInstallScript)
      .map(({ name }) => name),
  );
  const unlisted = [...withScripts].filter((name) => allowScripts[name] === undefined);
  const stale = Object.keys(allowScripts).filter((name) => !withScripts.has(name));
  return [
    ...unlisted.map((name) => `${name} has an install script but is missing from allowScripts`),
    ...stale.map((name) => `allowScripts lists ${name}, which has no install script`),
  ];
}
