import { readFileSync } from "node:fs";

/** What package-lock.json says of a package at a place in node_modules. */
export interface LockedPackage {
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
