import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A command prefix that makes file modes effective. Empty for an ordinary user.
 * Root drops the capability that overrides modes, and can still read a checkout
 * that is closed to others. Undefined if root cannot drop it.
 */
export function commandBoundByModes(): readonly string[] | undefined {
  return [[], ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]].find(
    (prefix) => !writesInClosedFolder(prefix),
  );
}

/** Whether a command can write in a folder that is closed to writers, or cannot be run at all. */
function writesInClosedFolder(prefix: readonly string[]): boolean {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-modes-"));
  try {
    writeFileSync(join(folder, "there"), "");
    chmodSync(folder, 0o500);
    const script = 'test -e "$1/there" && ! touch "$1/new" 2>/dev/null';
    const [command = "", ...args] = [...prefix, "sh", "-c", script, "sh", folder];
    return spawnSync(command, args).status !== 0;
  } finally {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true });
  }
}
