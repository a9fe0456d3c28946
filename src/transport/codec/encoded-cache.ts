import type { DescMessage } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { createGenerationalCache } from "../../lib/cache.js";
import { cacheCounts } from "../../telemetry/metrics/process.js";

export type Encode = (response: object) => Buffer;

/** Bytes of encoded responses in each of the two generations of the cache. */
const generationBytes = 18 * 1024 * 1024;

/** One of this many encoded responses is cached. */
const encodedPerAdmitted = 2;

/** Memory that a cached response takes in addition to its bytes. */
const entryOverhead = 300;

/** An encoded application, and the field that may differ within a version. */
interface CachedResponse {
  readonly lastUsedAt: number | undefined;
  readonly encoded: Buffer;
}

/** Caches encoded applications by id and version, because they are read most. Other responses are not cached. */
export function cacheEncoded(schema: DescMessage, encode: Encode): Encode {
  if (schema.typeName !== ApplicationSchema.typeName) {
    return encode;
  }
  const cache = createGenerationalCache<CachedResponse, string>(
    generationBytes,
    encodedPerAdmitted,
    cacheCounts.responses,
  );

  return (response) => {
    const { id, version, key, lastUsedAt: lastUse } = response as Application;
    if (key !== undefined) {
      return encode(response);
    }
    const lastUsedAt = lastUse && timestampMs(lastUse);
    const cached = cache.get(id, version);
    if (cached && cached.lastUsedAt === lastUsedAt) {
      return cached.encoded;
    }
    const encoded = encode(response);
    if (cached || cache.shouldAdmit()) {
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
