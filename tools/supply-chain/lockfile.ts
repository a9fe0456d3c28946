import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

/** What package-lock.json says of a package at a place in node_modules. */
interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  /** Whether only tools for development ask for it. */
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export interface Lockfile {
  readonly lockfileVersion: number;
  /** By place; the empty one is this package itself. */
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** What package.json says. */
export interface Manifest extends LockedPackage {
  /** The packages that have install scripts, and whether each may run them. */
  readonly allowScripts?: Readonly<Record<string, boolean>>;
}

export const readLockfile = (): Lockfile => JSON.parse(readFileSync("package-lock.json", "utf8"));
export const readManifest = (): Manifest => JSON.parse(readFileSync("package.json", "utf8"));

/** The packages that are not this one, with their names. */
export function packagesIn({ packages }: Lockfile): (LockedPackage & { name: string })[] {
  return Object.entries(packages)
    .filter(([place]) => place !== "")
    .map(([place, locked]) => ({ ...locked, name: locked.name ?? nameAt(place) }));
}

/** Packages lie in each other: the last one is meant. */
function nameAt(place: string): string {
  return place.split("node_modules/").at(-1) ?? "";
}

const kindsOfDependencies = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
] as const;

/** One version. A range would let a lockfile that is made anew choose what nobody has looked at. */
const oneVersion = /^\d+\.\d+\.\d+(-[\w.]+)?$/;
/** What comes from a registry, and not from a repository, an address or a folder. */
const fromRegistry = /^(npm:(@[\w.-]+\/)?[\w.-]+@)?[\w\s.^~<>=|*+-]*$/;

/** What is wrong with a lockfile, in a line each. */
export function faultsOf(lock: Lockfile, manifest: Manifest): string[] {
  return [
    ...disagreements(lock, manifest),
    ...packagesIn(lock).flatMap(faultsOfPackage),
    ...looseVersions(manifest),
    ...undecidedScripts(lock, manifest),
  ];
}

function disagreements({ lockfileVersion, packages }: Lockfile, manifest: Manifest): string[] {
  const locked = packages[""] ?? {};
  const faults = kindsOfDependencies
    .filter((kind) => !isDeepStrictEqual(locked[kind] ?? {}, manifest[kind] ?? {}))
    .map((kind) => `the lockfile has other ${kind} than package.json: run npm install`);
  return lockfileVersion === 3 ? faults : [`its version is ${lockfileVersion}, not 3`, ...faults];
}

function faultsOfPackage(locked: LockedPackage & { name: string }): string[] {
  const { name, version, integrity, resolved, link } = locked;
  const faults: string[] = [];
  if (link || version === undefined) {
    faults.push(`${name} is a link, not a version of a registry`);
  } else if (!integrity?.startsWith("sha512-")) {
    faults.push(`${name}@${version} has no sha512 integrity`);
  }
  if (resolved !== undefined) {
    faults.push(
      `${name}@${version} names where it is from: omit-lockfile-registry-resolved is off`,
    );
  }
  for (const [dependency, range] of dependenciesOf(locked)) {
    if (!fromRegistry.test(range)) {
      faults.push(`${name}@${version} wants ${dependency} from ${range}, which is no registry`);
    }
  }
  return faults;
}

/** Peers are what others bring, of whatever version they have. */
function dependenciesOf({ dependencies, devDependencies, optionalDependencies }: LockedPackage) {
  return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies });
}

function looseVersions(manifest: Manifest): string[] {
  return dependenciesOf(manifest)
    .filter(([, range]) => !oneVersion.test(range))
    .map(([name, range]) => `package.json wants ${name} ${range}, which is not one version`);
}

/** Each package that comes with an install script is decided on by name, and no other. */
function undecidedScripts(lock: Lockfile, { allowScripts = {} }: Manifest): string[] {
  const having = new Set(
    packagesIn(lock)
      .filter(({ hasInstallScript }) => hasInstallScript)
      .map(({ name }) => name),
  );
  const undecided = [...having].filter((name) => allowScripts[name] === undefined);
  const stale = Object.keys(allowScripts).filter((name) => !having.has(name));
  return [
    ...undecided.map((name) => `${name} has an install script that allowScripts says nothing of`),
    ...stale.map((name) => `allowScripts names ${name}, which has no install script`),
  ];
}
