import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

function mount(megabytes: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-disk-"));
  const args = ["-t", "tmpfs", "-o", `size=${megabytes}m`, "latchkey-test", folder];
  if (spawnSync("mount", args).status === 0) {
    return folder;
  }
  rmdirSync(folder);
  return undefined;
}

function unmount(folder: string): void {
  // Processes with open files keep the file system, but not the folder, busy.
  if (spawnSync("umount", ["--lazy", folder]).status === 0) {
    rmdirSync(folder);
  }
}

/** Whether this process can mount a tmpfs, which requires root. */
export function canMount(): boolean {
  const folder = process.platform === "linux" ? mount(1) : undefined;
  if (folder !== undefined) {
    unmount(folder);
  }
  return folder !== undefined;
}

export const whyNoMount = "a tmpfs cannot be mounted";

/** Mounts a small tmpfs for a test, and unmounts it afterwards. */
export async function withSmallDisk(
  megabytes: number,
  use: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = mount(megabytes);
  if (folder === undefined) {
    throw new Error(whyNoMount);
  }
  try {
    await use(folder);
  } finally {
    unmount(folder);
  }
}

/** Resizes a disk of {@link withSmallDisk}. */
export function resizeDisk(folder: string, megabytes: number): void {
  execFileSync("mount", ["-o", `remount,size=${megabytes}m`, folder]);
}

/** Writes a file until the disk is full, as other programs may do. */
export async function fillDisk(folder: string): Promise<void> {
  const file = await open(join(folder, "filler"), "w");
  const page = Buffer.alloc(4096, 1);
  try {
    for (;;) {
      await file.write(page);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") {
      throw error;
    }
  } finally {
    await file.close();
  }
}
