/**
 * How many bytes of what is kept are read for one at once, unless it is a
 * single thing. In memory they become several times as many, and clients of
 * gRPC take messages of 4 MB.
 */
const largestReading = 1024 * 1024;

/** The room of one reading. */
export interface Room {
  /** Whether so many bytes more find room, as the first do however many they are. What does not ends the reading. */
  takes(size: number): boolean;
}

export function createRoom(): Room {
  let taken = 0;

  return {
    takes(size) {
      const isFirst = taken === 0;
      taken += size;
      return isFirst || taken <= largestReading;
    },
  };
}
