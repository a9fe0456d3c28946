import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { cacheCountsOf, createGenerationalCache } from "../../lib/cache.js";

export type Encode = (response: object) => Buffer;

/** Returns an encoded application with a last use. Writes the closing bracket of JSON, or the length of a binary message, anew. */
type AddLastUse = (encoded: Buffer, lastUse: Timestamp) => Buffer;

/** Bytes of encoded responses in each of the two generations of a cache. There is a cache per format. */
const generationBytes = 18 * 1024 * 1024;

/** One of this many encoded responses is cached. */
const encodedPerAdmitted = 2;

/** Memory that a cached response takes in addition to its bytes. */
const entryOverhead = 300;

/** An encoded application. Its last use is at the end, because it changes within a version. */
interface CachedResponse {
  encoded: Buffer;
  lastUsedAt: number | undefined;
  /** The size without the last use. */
  readonly bareSize: number;
}

/** Caches encoded applications by id and version, because they are read most. Other responses are not cached. */
export function cacheEncoded(schema: DescMessage, encode: Encode, addLastUse: AddLastUse): Encode {
  if (schema.typeName !== ApplicationSchema.typeName) {
    return encode;
  }
  const cache = createGenerationalCache<CachedResponse, string>(
    generationBytes,
    encodedPerAdmitted,
    cacheCountsOf("responses"),
  );

  function addToCache(response: Application): CachedResponse {
    // Its fields may be getters of the prototype, which a spread does not copy.
    const message = create(
      ApplicationSchema,
      response as MessageInitShape<typeof ApplicationSchema>,
    );
    const encoded = copyOf(encode({ ...message, lastUsedAt: undefined }));
    const entry = { encoded, lastUsedAt: undefined, bareSize: encoded.length };
    const { id, version } = response;
    return cache.add(id, version, entry, encoded.length + entryOverhead);
  }

  return (response) => {
    const application = response as Application;
    const { id, version, key, lastUsedAt: lastUse } = application;
    if (key !== undefined) {
      return encode(response);
    }
    let cached = cache.get(id, version);
    if (!cached) {
      if (!cache.shouldAdmit()) {
        return encode(response);
      }
      cached = addToCache(application);
    }
    const lastUsedAt = lastUse && timestampMs(lastUse);
    if (cached.lastUsedAt !== lastUsedAt) {
      const bare = cached.encoded.subarray(0, cached.bareSize);
      cached.encoded = copyOf(lastUse ? addLastUse(bare, lastUse) : encode(response));
      cached.lastUsedAt = lastUsedAt;
    }
    return cached.encoded;
  };
}

/** Copies bytes into their own memory. Small buffers are slices of a pool, which would stay in memory with them. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
