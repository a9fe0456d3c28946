import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Settings } from "../../config.js";
import { type Finding, fail, ok, warn } from "./finding.js";
import { isAtLeast } from "./is-at-least.js";

/** Whether this Node is one that the package is made for. */
export function checkNode(): Finding {
  const { engines } = createRequire(import.meta.url)("latchkey/package.json");
  const wanted: string = engines.node.replace(">=", "");
  const present = process.versions.node;
  return isAtLeast(present, wanted)
    ? ok("node", `version ${present}`)
    : fail("node", `version ${present} is too old`, `Run it with Node.js ${wanted} or newer.`);
}

/** What is open beside the connections of callers: the store, logs, listeners. */
const otherFiles = 200;

/** Whether the system lets a process have as many connections as the settings do. Only Linux tells. */
export async function checkOpenFiles({ limits }: Settings): Promise<Finding[]> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files\s+(\d+)/m.exec(text) ?? [];
  if (most === undefined) {
    return [];
  }
  const { connections } = limits;
  return [
    Number(most) >= connections + otherFiles
      ? ok("open files", `${most} are allowed`)
      : warn(
          "open files",
          `${most} are allowed, too few for CONNECTION_LIMIT=${connections}`,
          `Raise the limit (ulimit -n ${connections + otherFiles}), or lower CONNECTION_LIMIT.`,
        ),
  ];
}
