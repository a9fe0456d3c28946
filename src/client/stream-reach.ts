import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

/** By how much the clocks of two machines drift apart at most, as a part of the time. */
const worstDrift = 0.001;

/**
 * Tells how far the messages of a stream reach, by our own clock. The first
 * was sent after the stream was opened, so nothing from before that is
 * missing; how much later the others are, the clock of the service tells. When
 * they arrive tells nothing: they may have waited on the way.
 */
export function createReach(opened: number): (completeUntil: Timestamp) => number {
  let first: number | undefined;
  return (completeUntil) => {
    const moment = timestampMs(completeUntil);
    // Moments are rounded down, and so may lie apart by up to a millisecond less than it seems.
    first ??= moment + 1;
    return opened + (moment - first) * (1 - worstDrift);
  };
}
