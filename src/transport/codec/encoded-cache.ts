import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { createGenerationalCache } from "../../lib/cache.js";
import { cacheCounts } from "../../telemetry/metrics/process.js";

export type Encode = (response: object) => Buffer;

/** Adds the last use to an encoded application that has none, and returns a new buffer. */
export type AddLastUse = (encoded: Buffer, lastUse: Timestamp) => Buffer;

/** Bytes of encoded responses in each of the two generations of a cache. There is a cache per format. */
const generationBytes = 18 * 1024 * 1024;

/** One of this many encoded responses is cached. */
const encodedPerAdmitted = 2;

/** Memory that a cached response takes in addition to its bytes. */
const entryOverhead = 300;

/**
 * Caches encoded applications by id and version, because they are read most. Other
 * responses are not cached. The last use changes within a version, so the cached
 * bytes do not contain it.
 */
export function cacheEncoded(schema: DescMessage, encode: Encode, addLastUse: AddLastUse): Encode {
  if (schema.typeName !== ApplicationSchema.typeName) {
    return encode;
  }
  const cache = createGenerationalCache<Buffer, string>(
    generationBytes,
    encodedPerAdmitted,
    cacheCounts.responses,
  );

  function addToCache(response: Application): Buffer {
    // Its fields may be getters of the prototype, which a spread does not copy.
    const message = create(
      ApplicationSchema,
      response as MessageInitShape<typeof ApplicationSchema>,
    );
    const encoded = copyOf(encode({ ...message, lastUsedAt: undefined }));
    const { id, version } = response;
    return cache.add(id, version, encoded, encoded.length + entryOverhead);
  }

  return (response) => {
    const application = response as Application;
    const { id, version, key, lastUsedAt } = application;
    if (key !== undefined) {
      return encode(response);
    }
    let encoded = cache.get(id, version);
    if (!encoded) {
      if (!cache.shouldAdmit()) {
        return encode(response);
      }
      encoded = addToCache(application);
    }
    return lastUsedAt ? addLastUse(encoded, lastUsedAt) : encoded;
  };
}

/** Copies bytes into their own memory. Small buffers are slices of a pool, which would stay in memory with them. */
function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
