import { createGenerations } from "../../generations.js";

/** Bytes of JSON whose records each of two generations may keep. */
const generationBytes = 4 * 1024 * 1024;

/** Of so many records offered one is kept: soon all that are read often, and few that are read once. */
const offersPerKept = 4;

/** Keeps records that are read often, so that reading them again costs a look at their stamp and no parsing. */
export function createRecordCache<R>() {
  const generations = createGenerations<R>(generationBytes);
  let offers = 0;

  return {
    get: generations.get,

    offer(id: string, stamp: number, record: R, size: number): R {
      return ++offers % offersPerKept === 0 ? generations.add(id, stamp, record, size) : record;
    },
  };
}
