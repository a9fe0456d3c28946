import type { Collection, Document, FindOptions } from "mongodb";
import type { ApplicationStore } from "../port/store.js";
import { byForeignHash } from "./collections.js";
import type { FreshRead } from "./connect.js";
import { type ApplicationDocument, fromUuid, hash } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";
import { createBatcher } from "./lookup.js";

/** Finds the applications that foreign keys belong to, in batches. */
export function createFindForeign(
  documents: Collection<ApplicationDocument>,
  freshRead: FreshRead,
  find: ApplicationStore["find"],
): ApplicationStore["findForeign"] {
  const lookup = createBatcher((hashes: readonly string[]) =>
    findOwners(
      documents,
      hashes.map((text) => Buffer.from(text, "base64")),
      {},
      freshRead(),
    ),
  );
  const findUnexpired = (ids: Iterable<string>) => Promise.all(Array.from(ids, find));

  return async (hashes) => {
    const found = await Promise.all(hashes.map((bytes) => lookup(toBase64(bytes))));
    const owners = new Set(found.flatMap((owners) => owners ?? []));
    if (owners.size < 2) {
      const [owner] = owners;
      return owner;
    }
    const [owner, ...others] = (await findUnexpired(owners)).filter((one) => one !== undefined);
    return others.length > 0 ? undefined : owner?.id;
  };
}

/** For each hash in base64, the ids of its applications. More than one is a misconfiguration. */
export async function findOwners(
  documents: Collection<ApplicationDocument>,
  hashes: readonly Uint8Array[],
  among: Document = {},
  reading: FindOptions = {},
): Promise<Map<string, string[]>> {
  const filter = { foreign_hashes: { $in: hashes.map(hash) }, ...among };
  const options = { projection: { foreign_hashes: 1 }, hint: byForeignHash, ...limits, ...reading };
  const found = await callDriver(() => documents.find(filter, options).toArray());
  const owners = new Map<string, string[]>();
  for (const { _id, foreign_hashes = [] } of found) {
    for (const text of foreign_hashes.map((bytes) => toBase64(bytes.value()))) {
      owners.set(text, [...(owners.get(text) ?? []), fromUuid(_id)]);
    }
  }
  return owners;
}

export function toBase64(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("base64");
}
