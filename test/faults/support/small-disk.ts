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
  // What still has a file open there keeps the disk, not the folder.
  if (spawnSync("umount", ["--lazy", folder]).status === 0) {
    rmdirSync(folder);
  }
}

/** Whether tests can have a disk of their own: for that one has to be the superuser. */
export function canMount(): boolean {
  const folder = process.platform === "linux" ? mount(1) : undefined;
  if (folder !== undefined) {
    unmount(folder);
  }
  return folder !== undefined;
}

export const whyNoMount = "a tmpfs cannot be mounted";

/** Gives a test a disk of its own, in memory, and removes it afterwards. */
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

/** Gives a disk of {@link withSmallDisk} another size. */
export function resizeDisk(folder: string, megabytes: number): void {
  execFileSync("mount", ["-o", `remount,size=${megabytes}m`, folder]);
}

/** Takes up all that is free on a disk, as other programs may do. */
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
