import { randomUUID } from "node:crypto";
import type { Database, RootDatabase } from "lmdb";
import { idFromBytes, writeId } from "../../lib/uuid.js";

/** The schema version of a data folder. Raise it when older code could no longer read or maintain the tables. */
export const supportedSchema = 6;

const schemaKey = "schema-version";

/** How many tables a folder may have. */
export const maxTables = 32;

/** How many read transactions may be open at once, in all processes. */
export const maxReaders = 512;

/** The tables of a data folder. See row-keys.ts for the layout of their keys. */
export interface Tables {
  /** Properties of the folder. */
  readonly meta: Database<string, string>;
  /** Records by id. */
  readonly applications: Database<Buffer, string>;
  readonly sessions: Database<Buffer, string>;
  /** The rows of all indexes of records, and the stored counts of rows: see indexes.ts. */
  readonly index: Database<Buffer, Buffer>;
  readonly counts: Database<Buffer, Buffer>;
  /** Number → expired application or session. Records are removed with their entry, if not before. */
  readonly expired: Database<Buffer, Buffer>;
  /** The numbers of open sessions: see open-sessions.ts. */
  readonly openSessions: Database<Buffer, Buffer>;
  /** Start of the index rows of ended records, which are to be swept → the last row that was swept. */
  readonly sweeps: Database<Buffer, Buffer>;
  /** Number → audit event. */
  readonly events: Database<Buffer, Buffer>;
  /** Tenant, attribute, time, number of each event. */
  readonly eventIndex: Database<Buffer, Buffer>;
  /** Id → stored response of an idempotent call; expiry, id of each. */
  readonly responses: Database<Buffer, Buffer>;
  readonly responseExpirations: Database<Buffer, Buffer>;
}

type Meta = Tables["meta"];

export function openTables(root: RootDatabase<Buffer, Buffer>, meta: Meta): Tables {
  const keyEncoder = { writeKey: writeId, readKey: idFromBytes };
  const byId = { encoding: "binary", keyEncoder } as const;
  const byKey = { encoding: "binary", keyEncoding: "binary" } as const;
  return {
    meta,
    applications: root.openDB("applications", byId),
    sessions: root.openDB("sessions", byId),
    index: root.openDB("index", byKey),
    counts: root.openDB("counts", byKey),
    expired: root.openDB("expired", byKey),
    openSessions: root.openDB("open-sessions", byKey),
    sweeps: root.openDB("sweeps", byKey),
    events: root.openDB("events", byKey),
    eventIndex: root.openDB("event-index", byKey),
    responses: root.openDB("responses", byKey),
    responseExpirations: root.openDB("response-expirations", byKey),
  };
}

/** Whether the folder has a schema that this version reads, or none yet. */
export function hasSupportedSchema(meta: Meta): boolean {
  return [0, supportedSchema].includes(readSchema(meta));
}

/** Returns the schema version of a folder, or 0 for a new one. */
export function readSchema(meta: Meta): number {
  return Number(meta.get(schemaKey) ?? 0);
}

/** Describes a schema that this version does not read. */
export function describeSchema(meta: Meta): string {
  return `schema ${readSchema(meta)}; this version reads schema ${supportedSchema}`;
}

/** Writes the schema version and an id into a new folder, and returns the folder's id. */
export async function initializeMeta(
  root: RootDatabase<Buffer, Buffer>,
  meta: Meta,
): Promise<string> {
  const id = meta.get("id");
  if (id !== undefined) {
    return id;
  }
  return root.childTransaction(() => {
    // Another process may have been first.
    const id = meta.get("id") ?? randomUUID();
    meta.put(schemaKey, String(supportedSchema));
    meta.put("id", id);
    return id;
  });
}
