import { createGenerationalCache } from "../../lib/cache.js";
import { type HasSourceRecord, sourceRecord } from "../../store/port/records.js";
import { cacheCounts } from "../../telemetry/metrics/process.js";

export type Encode = (response: object) => Buffer;

/** Bytes of encoded responses in each of the two generations of the cache. */
const generationBytes = 8 * 1024 * 1024;

/** One of this many encoded responses is cached. */
const encodedPerAdmitted = 4;

/** Memory that a cached response takes in addition to its bytes. */
const entryOverhead = 300;

/** An encoded response, and the field that may differ within a version of a record. */
interface CachedResponse {
  readonly lastUsedAt: number | undefined;
  readonly encoded: Buffer;
}

/** Caches the encoded responses that show a record, by its version. */
export function cacheEncoded(encode: Encode): Encode {
  const cache = createGenerationalCache<CachedResponse>(
    generationBytes,
    encodedPerAdmitted,
    cacheCounts.responses,
  );

  return (response) => {
    const record = (response as HasSourceRecord)[sourceRecord];
    if (!record) {
      return encode(response);
    }
    const { id, version, lastUsedAt } = record;
    const cached = cache.get(id, version);
    if (cached && cached.lastUsedAt === lastUsedAt) {
      return cached.encoded;
    }
    const encoded = encode(response);
    if (cache.shouldAdmit()) {
      const entry = { lastUsedAt, encoded: copyOf(encoded) };
      cache.add(id, version, entry, encoded.length + entryOverhead);
    }
    return encoded;
  };
}

/** Copies bytes into their own memory. Small buffers are slices of a pool, which would stay in memory with them. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
