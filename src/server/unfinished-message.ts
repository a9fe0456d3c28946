import { envelopeSize } from "./protocols/envelope.js";

/** A message that has not ended; all of it is nothing where there is none. */
interface Unfinished {
  /** How many bytes of it have come, with its prefix. */
  readonly arrived: number;
  /** How long it will be, once that is known. */
  readonly announced: number;
}

/** Creates what tells after each part of a stream what has not ended. */
export function createUnfinished(): (part: Buffer) => Unfinished {
  let prefix: Buffer = Buffer.alloc(0);
  let length = 0;
  let missing = 0;
  return (part) => {
    let at = 0;
    while (at < part.length) {
      if (missing > 0) {
        const taken = Math.min(missing, part.length - at);
        missing -= taken;
        at += taken;
        continue;
      }
      const end = at + envelopeSize - prefix.length;
      prefix = Buffer.concat([prefix, part.subarray(at, end)]);
      at = Math.min(end, part.length);
      if (prefix.length === envelopeSize) {
        length = prefix.readUInt32BE(1);
        missing = length;
        prefix = Buffer.alloc(0);
      }
    }
    return missing > 0
      ? { arrived: envelopeSize + length - missing, announced: length }
      : { arrived: prefix.length, announced: 0 };
  };
}
