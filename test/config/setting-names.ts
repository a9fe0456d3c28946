import { readSettings } from "../../src/config/settings.js";

/** The name of every setting, collected while the service reads an empty environment. */
export function settingNames(): ReadonlySet<string> {
  const names = new Set<string>();
  readSettings(
    new Proxy({}, { get: (_, name) => void (typeof name === "string" && names.add(name)) }),
  );
  return names;
}
