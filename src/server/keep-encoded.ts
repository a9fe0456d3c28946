import { createGenerations } from "../generations.js";
import { type ShowsRecord, shownRecord } from "../shown-record.js";

export type Encode = (answer: object) => Buffer;

/** Bytes of encoded answers that each of two generations may keep. */
const generationBytes = 8 * 1024 * 1024;

/** Of so many answers encoded one is kept. */
const encodedPerKept = 4;

/** What an answer that is kept takes beside its own bytes. */
const overhead = 300;

/** Encodes an answer that shows a record once per version of it, as long as it is asked for often. */
export function keepEncoded(encode: Encode): Encode {
  const generations = createGenerations<Buffer>(generationBytes, encodedPerKept);

  return (answer) => {
    const record = (answer as ShowsRecord)[shownRecord];
    if (!record) {
      return encode(answer);
    }
    const { id, version } = record;
    const kept = generations.get(id, version);
    if (kept) {
      return kept;
    }
    const encoded = encode(answer);
    if (generations.takesNext()) {
      generations.add(id, version, copyOf(encoded), encoded.length + overhead);
    }
    return encoded;
  };
}

/** A copy in memory of its own: small buffers are parts of larger ones, which would be kept with them. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
