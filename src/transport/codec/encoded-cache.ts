import { createGenerationalCache } from "../../lib/cache.js";
import { type ShowsRecord, shownRecord } from "../../store/port/shown-record.js";
import { cacheCounts } from "../../telemetry/metrics/caches.js";

export type Encode = (answer: object) => Buffer;

/** Bytes of encoded answers that each of two generations may keep. */
const generationBytes = 8 * 1024 * 1024;

/** Of so many answers encoded one is kept. */
const encodedPerKept = 4;

/** What an answer that is kept takes beside its own bytes. */
const overhead = 300;

/** An answer in its encoding, and what may differ between two of the same version of a record. */
interface Kept {
  readonly lastUsedAt: number | undefined;
  readonly encoded: Buffer;
}

/** Encodes an answer that shows a record once per version of it, as long as it is asked for often. */
export function keepEncoded(encode: Encode): Encode {
  const generations = createGenerationalCache<Kept>(
    generationBytes,
    encodedPerKept,
    cacheCounts.answers,
  );

  return (answer) => {
    const record = (answer as ShowsRecord)[shownRecord];
    if (!record) {
      return encode(answer);
    }
    const { id, version, lastUsedAt } = record;
    const kept = generations.get(id, version);
    if (kept && kept.lastUsedAt === lastUsedAt) {
      return kept.encoded;
    }
    const encoded = encode(answer);
    if (generations.shouldAdmit()) {
      const entry = { lastUsedAt, encoded: copyOf(encoded) };
      generations.add(id, version, entry, encoded.length + overhead);
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
