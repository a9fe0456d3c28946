/**
 * How many bytes of what is kept are read for one at once, unless it is a
 * single thing. In memory they become several times as many, and clients of
 * gRPC take messages of 4 MB.
 */
const largestReading = 1024 * 1024;

/** The room of one reading. */
export interface PageBudget {
  /** Whether so many bytes more find room, as the first do however many they are. What does not ends the reading. */
  tryAdd(size: number): boolean;
}

export function createPageBudget(): PageBudget {
  let taken = 0;

  return {
    tryAdd(size) {
      const isFirst = taken === 0;
      taken += size;
      return isFirst || taken <= largestReading;
    },
  };
}
