import { versionMismatch } from "./errors.js";
import type { ApplicationRecord } from "./store/store.js";

/** The version of an application as callers see it, who only compare it. */
export function versionOf({ version }: ApplicationRecord): string {
  return String(version);
}

/** Stands for every version, as in HTTP. */
const any = "*";

/** Refuses to touch an application that is not at the version that the caller named, if it named one. */
export function checkVersion(current: ApplicationRecord, ifMatch: string | undefined): void {
  const version = versionOf(current);
  if (ifMatch !== undefined && ifMatch !== any && ifMatch !== version) {
    throw versionMismatch(version);
  }
}
