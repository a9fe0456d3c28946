import { readSettings } from "../../src/config/settings.js";

/** The name of every setting that the service reads, found by having it read them. */
export function knownSettings(): ReadonlySet<string> {
  const names = new Set<string>();
  readSettings(
    new Proxy({}, { get: (_, name) => void (typeof name === "string" && names.add(name)) }),
  );
  return names;
}
