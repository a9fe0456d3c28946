/**
 * Data of earlier versions. The fixtures hold the rows, byte for byte, that
 * version 0.1.0 and the last version before schema 4 wrote while their own
 * server was asked for what `known` tells of, and what it answered.
 */
import { readFile } from "node:fs/promises";
import { open } from "lmdb";
export type FolderFixture = "data-folder-schema-1" | "data-folder-schema-3";

/** What is told nowhere in the data: the keys that they keep the hashes of, and how they were shown. */
export interface Known {
  readonly tenantId: string;
  readonly applications: Readonly<Record<KnownApplication, KnownApplicationFacts>>;
  readonly sessions: { readonly open: KnownSession; readonly authorized: KnownGrant };
}

/** By type, and one that was updated and then given another key. */
export type KnownApplication = "management" | "private" | "public" | "changed";

export interface KnownApplicationFacts {
  readonly id: string;
  readonly key: string;
  /** What the REST API answered when it was asked for the application. */
  readonly body: string;
}

/** Sessions are of the public application. */
export interface KnownSession {
  readonly id: string;
  readonly key: string;
  readonly nonce: string;
}

/** A session with what it was given, in the names of the REST API. */
export interface KnownGrant extends KnownSession {
  readonly permissions: readonly string[];
  readonly rules: readonly object[];
  readonly expires_at: string;
}

interface FolderContent {
  readonly known: Known;
  /** By table, the value of each key, in hexadecimal digits. */
  readonly tables: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Makes the tables of an earlier version in an empty folder. */
export async function loadFolder(fixture: FolderFixture, path: string): Promise<Known> {
  const { known, tables } = await read<FolderContent>(fixture);
  const root = open({ path, noSubdir: false, overlappingSync: false });
  for (const [name, rows] of Object.entries(tables)) {
    // Encodings are of the reader alone, so that bytes suit all tables.
    const table = root.openDB<Buffer, Buffer>({ name, encoding: "binary", keyEncoding: "binary" });
    await table.transaction(() => {
      for (const [key, value] of Object.entries(rows)) {
        table.put(Buffer.from(key, "hex"), Buffer.from(value, "hex"));
      }
    });
  }
  await root.close();
  return known;
}

async function read<Content>(fixture: string): Promise<Content> {
  return JSON.parse(await readFile(`test/fixtures/${fixture}.json`, "utf8"));
}
