import { BSON, type Document } from "mongodb";
import { cacheCounts } from "../../cache-counts.js";
import { createGenerations } from "../../generations.js";
import { idFromBytes } from "../../ids.js";

/** Bytes of documents whose records each of two generations may keep. */
const generationBytes = 4 * 1024 * 1024;

/** Of so many records made one is kept. */
const madePerKept = 4;

/** Where a UUID is in a document that starts, as all do in MongoDB, with its `_id`. */
const idOffset = 14;
const idLength = 16;

/**
 * Makes records of documents as they came from the database, in BSON. Those
 * that are read often are kept with the bytes that they were made of, and
 * serve again when the very same bytes come: to compare costs a fraction of
 * decoding, and can never answer what the database did not say just now.
 */
export function createDecoder<D extends Document, R>(
  toRecord: (document: D) => R,
): (document: Uint8Array) => R {
  const generations = createGenerations<{ bytes: Uint8Array; record: R }>(
    generationBytes,
    madePerKept,
    cacheCounts.records,
  );
  const make = (bytes: Uint8Array) => toRecord(BSON.deserialize(bytes) as D);

  return (document) => {
    const { buffer, byteOffset, length } = document;
    // It need not be an id: only the bytes decide.
    const id = idFromBytes(Buffer.from(buffer, byteOffset + idOffset, idLength));
    const kept = generations.get(id, length);
    if (kept && Buffer.compare(kept.bytes, document) === 0) {
      return kept.record;
    }
    if (!generations.takesNext()) {
      return make(document);
    }
    // Copied, as the bytes are a part of a whole answer that must not be kept with them.
    const bytes = new Uint8Array(document);
    return generations.add(id, length, { bytes, record: make(bytes) }, length).record;
  };
}
