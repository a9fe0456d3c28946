/**
 * Stored bytes per page. Decoded they take several times as much memory, and
 * gRPC clients accept messages of 4 MB.
 */
const maxPageBytes = 1024 * 1024;

/** Limits the size of one page. */
interface PageBudget {
  /** Whether an item still fits. The first always does. */
  tryAdd(size: number): boolean;
}

export function createPageBudget(): PageBudget {
  let used = 0;

  return {
    tryAdd(size) {
      const isFirst = used === 0;
      used += size;
      return isFirst || used <= maxPageBytes;
    },
  };
}
