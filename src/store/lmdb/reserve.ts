import { randomBytes } from "node:crypto";
import { constants as fileFlags, statfsSync, statSync, truncateSync } from "node:fs";
import { open } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { RootDatabase } from "lmdb";
import type { Tables } from "./tables.js";
import type { SpaceGuard } from "./write-queue.js";

const megabyte = 1024 * 1024;

/** The space that is kept for revocations and upkeep. */
const reserveSize = 16 * megabyte;

/** What the largest change may take, its event and its kept answer included. */
const largestChange = 4 * megabyte;

/** What most revocations take less than, the pages that they copy included. */
const usualRevocation = megabyte / 8;

/** What must be free on the disk, beside the reserve, before the reserve is filled up again. */
const spaceBeside = 2 * largestChange;

/** While more than this is free on the disk, nothing has to be kept. */
const plenty = 1024 * megabyte;

/** How long ordinary changes are refused before the space is counted again, in milliseconds. */
const recountInterval = 100;

/**
 * Space for revocations on a full disk. The file `reserve` next to the data
 * takes it up, so that nobody else does, and is made shorter when a revocation
 * needs it. Other changes are refused before they use the last of the space,
 * wherever that is: on the disk, in the file, or in pages of the data file
 * that hold nothing, which LMDB uses again.
 */
export interface Reserve extends SpaceGuard {
  /** Whether no more than the reserve is left. */
  isAllThatIsLeft(): boolean;

  /** Fills the file up where the disk has space for it, and not plenty. */
  restore(): Promise<void>;
}

export function createReserve(folder: string, root: RootDatabase, tables: Tables): Reserve {
  const path = join(folder, "reserve");
  let recountAt = 0;

  /** Where the system does not tell, a write tells whether it finds space. */
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

  /** How many of so many changes find space beside the reserve. To look inside the data file takes time, and is often needless. */
  function countFitting(wanted: number): number {
    const onDisk = freeOnDisk();
    if (changesIn(onDisk) >= wanted) {
      return wanted;
    }
    return changesIn(onDisk + fileSize() + freeInside(root, tables));
  }

  return {
    isAllThatIsLeft: () => countFitting(1) <= 0,

    checkSpace(wanted) {
      if (performance.now() >= recountAt) {
        const fitting = countFitting(wanted);
        if (fitting > 0) {
          return fitting;
        }
        recountAt = performance.now() + recountInterval;
      }
      throw Object.assign(new Error("the space that is left is kept for revocations"), {
        code: constants.errno.ENOSPC,
      });
    },

    makeSpace(wanted) {
      const missing = largestChange + wanted * usualRevocation - freeOnDisk();
      if (missing <= 0) {
        return;
      }
      try {
        const size = fileSize();
        truncateSync(path, Math.max(0, size - missing));
      } catch {
        // The data file may have pages that hold nothing.
      }
    },

    async restore() {
      const free = freeOnDisk();
      const missing = free > plenty ? 0 : reserveSize - fileSize();
      if (missing > 0 && free >= missing + spaceBeside) {
        await fill(path).catch(() => {});
      }
    },
  };
}

/** How many changes find space beside the reserve. */
function changesIn(space: number): number {
  return Math.floor((space - reserveSize) / largestChange);
}

/** The bytes of the data file whose pages belong to no table. */
function freeInside(root: RootDatabase, tables: Tables): number {
  const { lastPageNumber, root: names, free } = root.getStats() as RootStats;
  const counted = [names, free, ...Object.values(tables).map((table) => table.getStats())];
  const headerPages = 2;
  const used = (counted as TableStats[]).reduce((sum, each) => sum + pagesOf(each), headerPages);
  return (lastPageNumber + 1 - used) * names.pageSize;
}

/** What lmdb tells of a table. */
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

/** Writes all of the file: holes would take up no space, nor would zeros on a disk that compresses. */
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
