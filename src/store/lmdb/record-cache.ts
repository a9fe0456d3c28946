/** Bytes of JSON whose records each of two generations may keep. */
const generationBytes = 4 * 1024 * 1024;

/** Of so many records offered one is kept: soon all that are read often, and few that are read once. */
const offersPerKept = 4;

/**
 * Keeps records that are read often, so that reading them again costs a look
 * at their stamp and no parsing. They are held in two generations: when the
 * younger one is full the older one is dropped.
 */
export function createRecordCache<R>() {
  type Kept = { stamp: number; record: R; size: number };
  let young = new Map<string, Kept>();
  let old = young;
  let size = 0;
  let offers = 0;

  function add(id: string, kept: Kept): R {
    if (size > generationBytes) {
      old = young;
      young = new Map();
      size = 0;
    }
    young.set(id, kept);
    size += kept.size;
    return kept.record;
  }

  return {
    get(id: string, stamp: number): R | undefined {
      const kept = young.get(id);
      if (kept) {
        return kept.stamp === stamp ? kept.record : undefined;
      }
      const older = old.get(id);
      return older?.stamp === stamp ? add(id, older) : undefined;
    },

    offer(id: string, stamp: number, record: R, size: number): R {
      return ++offers % offersPerKept === 0 ? add(id, { stamp, record, size }) : record;
    },
  };
}
