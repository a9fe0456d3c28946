import { randomBytes } from "node:crypto";
import { constants as fileFlags, statfsSync, statSync, truncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { RootDatabase } from "lmdb";
import type { Tables } from "./tables.js";
import type { SpaceGuard } from "./write-queue.js";

const megabyte = 1024 * 1024;

/** Disk space reserved for revocations and maintenance. */
const reserveSize = 16 * megabyte;

/** The most that one change takes, including its event and its stored response. */
const largestChange = 4 * megabyte;

/** Most revocations take less, including the pages that they copy. */
const typicalRevocation = megabyte / 8;

/** The free space, besides the reserve, that is required to refill the reserve. */
const refillMargin = 2 * largestChange;

/** Above this much free space, no reserve is needed. */
const ampleSpace = 1024 * megabyte;

/** Milliseconds for which ordinary changes are refused before free space is checked again. */
const recountInterval = 100;

/**
 * Keeps revocations possible on a full disk. The file `reserve` next to the
 * data occupies space, and is truncated when a revocation needs it. Other
 * changes are refused before they use the last of the free space, which is the
 * sum of the free disk space, the file, and the free pages of the data file.
 */
export interface Reserve extends SpaceGuard {
  /** Whether no space but the reserve is left. */
  isOnlySpaceLeft(): boolean;

  /** Refills the file if free space is scarce but sufficient. */
  refill(): Promise<void>;
}

export function createReserve(folder: string, root: RootDatabase, tables: Tables): Reserve {
  const path = join(folder, "reserve");
  let recountAt = 0;

  /** Infinite if the system cannot report it: the write itself then fails on a full disk. */
  function freeOnDisk(): number {
    try {
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize;
    } catch {
      return Number.POSITIVE_INFINITY;
    }
  }

  function fileSize(): number {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** How many of the wanted changes fit besides the reserve. Counting free pages is slow, and rarely needed. */
  function countFitting(wanted: number): number {
    const onDisk = freeOnDisk();
    if (changesIn(onDisk) >= wanted) {
      return wanted;
    }
    return changesIn(onDisk + fileSize() + freeInside(root, tables));
  }

  return {
    isOnlySpaceLeft: () => countFitting(1) <= 0,

    checkSpace(wanted) {
      if (performance.now() >= recountAt) {
        const fitting = countFitting(wanted);
        if (fitting > 0) {
          return fitting;
        }
        recountAt = performance.now() + recountInterval;
      }
      throw Object.assign(new Error("the remaining disk space is reserved for revocations"), {
        code: constants.errno.ENOSPC,
      });
    },

    makeSpace(wanted) {
      const missing = largestChange + wanted * typicalRevocation - freeOnDisk();
      if (missing <= 0) {
        return;
      }
      try {
        const size = fileSize();
        truncateSync(path, Math.max(0, size - missing));
      } catch {
        // The data file may have free pages.
      }
    },

    async refill() {
      const free = freeOnDisk();
      const missing = free > ampleSpace ? 0 : reserveSize - fileSize();
      if (missing > 0 && free >= missing + refillMargin) {
        await fill(path).catch(() => {});
      }
    },
  };
}

/** How many changes fit besides the reserve. */
function changesIn(space: number): number {
  return Math.floor((space - reserveSize) / largestChange);
}

/** The size of the data file's free pages. */
function freeInside(root: RootDatabase, tables: Tables): number {
  const { lastPageNumber, root: names, free } = root.getStats() as RootStats;
  const counted = [names, free, ...Object.values(tables).map((table) => table.getStats())];
  const headerPages = 2;
  const used = (counted as TableStats[]).reduce((sum, each) => sum + pagesOf(each), headerPages);
  return (lastPageNumber + 1 - used) * names.pageSize;
}

/** lmdb's statistics of a table, which its types lack. */
interface TableStats {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}

interface RootStats {
  readonly lastPageNumber: number;
  /** The table of the names of tables. */
  readonly root: TableStats;
  /** The table of free pages. */
  readonly free: TableStats;
}

function pagesOf(stats: TableStats): number {
  return stats.treeBranchPageCount + stats.treeLeafPageCount + stats.overflowPages;
}

/** Writes random bytes: sparse ranges, or zeros on a compressing disk, would occupy no space. */
async function fill(path: string): Promise<void> {
  const file = await open(path, fileFlags.O_WRONLY | fileFlags.O_CREAT, 0o600);
  try {
    const content = randomBytes(megabyte);
    for (let { size } = await file.stat(); size < reserveSize; { size } = await file.stat()) {
      await file.write(content, 0, Math.min(content.length, reserveSize - size), size);
    }
  } finally {
    await file.close();
  }
}
