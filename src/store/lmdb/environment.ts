import { resolve } from "node:path";
import { type Database, open, type RootDatabase } from "lmdb";
import { withTimeout } from "../../lib/timeout.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import { StoreUnavailable } from "../port/errors.js";
import { adviceFor, Refused, thrownByCallback } from "./errors.js";
import { prepareFolder, syncFolder } from "./folder.js";
import { createReserve, type Reserve } from "./reserve.js";
import { upgrade } from "./upgrade.js";
import { createWriteQueue, lateness, type WriteKind } from "./write-queue.js";

/**
 * Written into each folder; to be raised when older code could no longer read
 * it, or would write what newer code cannot rely on.
 *
 * 1: the first.
 * 2: an id, and a log of changes, which older code would not write.
 * 3: rows whose parts stand at fixed places. Those of before are read as well.
 * 4: applications with several keys, and tables of ends and of sessions by
 *    owner, which older code would neither read nor keep true.
 * 5: sessions listed by the application that authorized them too, counts of open
 *    sessions, and which applications manage their tenant, which older code would
 *    not keep true.
 */
export const knownSchema = 5;

export interface Tables {
  /** Facts about the folder. */
  readonly meta: Database<string, string>;
  /** Records by id. */
  readonly applications: Database<Buffer, string>;
  readonly sessions: Database<Buffer, string>;
  /** By tenant and id, the moment at which each application ends. */
  readonly byTenant: Database<Buffer, Buffer>;
  /** By tenant, how many rows it has in `byTenant`. */
  readonly counts: Database<string, string>;
  /** By moment and id: what ends when. */
  readonly applicationEnds: Database<Buffer, Buffer>;
  readonly sessionEnds: Database<Buffer, Buffer>;
  /** By moment and id: which records have ended, and are to be removed then. */
  readonly endedApplications: Database<Buffer, Buffer>;
  readonly endedSessions: Database<Buffer, Buffer>;
  /**
   * By moment, application and key, or `noKeyId` for the application itself:
   * all ends of the records there are, before them and after.
   */
  readonly ends: Database<Buffer, Buffer>;
  /** By hash and application: which keys were made elsewhere. */
  readonly foreignKeys: Database<Buffer, Buffer>;
  /** By tenant, moment and id, so that a tenant's expired rows can be left out of its count. */
  readonly tenantEnds: Database<Buffer, Buffer>;
  /** By tenant, fact and id: which applications there are of a name, a type, a permission and so on. */
  readonly applicationFacts: Database<Buffer, Buffer>;
  /** By owner and id: which sessions there are, dead ones included. */
  readonly sessionsByTenant: Database<Buffer, Buffer>;
  /** The owner is the application that opened the session; there is another row of the one that authorized it. */
  readonly sessionsByApplication: Database<Buffer, Buffer>;
  /** By application and epoch: how many sessions are open; and with end and id: which. */
  readonly openSessions: Database<Buffer, Buffer>;
  /** By application: whose dead sessions are to be removed, and the key in `sessionsByApplication` to go on after. */
  readonly orphaned: Database<Buffer, Buffer>;
  /** By number, ascending: what happened to applications and sessions. */
  readonly changes: Database<string, Buffer>;
  /** By number, ascending: what happened in all tenants. */
  readonly events: Database<Buffer, Buffer>;
  /** By tenant, what they are about, moment and number: which events there are. */
  readonly eventIndex: Database<Buffer, Buffer>;
  /** By id: answers that can be given again, and by moment and id: when they end. */
  readonly answers: Database<Buffer, Buffer>;
  readonly answerEnds: Database<Buffer, Buffer>;
}

export interface Environment {
  /** Tells these data from all others. */
  readonly id: string;
  readonly tables: Tables;

  /** Runs reads on one snapshot, which holds all that any process acknowledged before. */
  read<T>(work: () => T): T;

  /**
   * Runs reads and writes in one transaction, and resolves when it is on disk.
   * Those that wait at the same time share a commit, yet one that throws takes
   * back only its own writes. `work` must not answer a promise. What it refuses
   * without having written anything, it answers as {@link Refused}. Work is
   * `ordinary` unless another kind is given.
   */
  write<T>(work: () => T | Refused, kind?: WriteKind): Promise<T>;

  /** The space that is kept for revocations. */
  readonly reserve: Pick<Reserve, "isAllThatIsLeft" | "restore">;

  /** Adds a listener, which is called after each commit of this process that is on disk, before its writes resolve. */
  onWrite(listener: () => void): void;

  /**
   * Tells apart, inside `write`, what is taken back as one. What was found or
   * written under the same number still holds; of all else nothing is known.
   */
  attempt(): number;

  close(): Promise<void>;
}

/** Opens the tables of a folder, or throws an error fit to be shown to the person who chose the folder. */
export async function openEnvironment(folder: string, writeTimeout: number): Promise<Environment> {
  const path = resolve(folder);
  let root: RootDatabase<Buffer, Buffer> | undefined;
  let schema = knownSchema;
  try {
    await prepareFolder(path);
    root = openRoot(path);
    const meta = root.openDB<string, string>("meta", { encoding: "string" });
    schema = Number(meta.get("schema") ?? 0);
    if (schema <= knownSchema) {
      const tables = openTables(root, meta);
      const id = await upgrade(root, tables, knownSchema);
      await syncFolder(path);
      const reserve = createReserve(path, root, tables);
      await reserve.restore();
      return createEnvironment({ path, id, root, tables, reserve, writeTimeout });
    }
  } catch (error) {
    await root?.close();
    throw new Error(
      `The data folder ${path} cannot be used (${messageOf(error)}): ` +
        "choose one that this process may read and write, on a disk with space left.",
      { cause: error },
    );
  }
  await root.close();
  throw new Error(
    `The data folder ${path} was written by a newer version (schema ${schema}, this version ` +
      `knows ${knownSchema}): run that version, or choose another folder.`,
  );
}

function openRoot(path: string): RootDatabase<Buffer, Buffer> {
  const options = {
    path,
    noSubdir: false,
    encoding: "binary",
    // A commit is then synced before anyone can see it. Overlapping syncs are
    // no quicker here, and show to all what a power cut may yet take back.
    overlappingSync: false,
    // What lmdb batches by itself comes with a promise that nobody handles: a
    // full disk would end the process.
    eventTurnBatching: false,
    // Address space, not disk or memory; the file grows as it is filled.
    mapSize: 2 ** 36,
    maxReaders: 512,
    maxDbs: 32,
    permissionsMode: 0o600,
  } as const;
  return open(options);
}

function openTables(root: RootDatabase<Buffer, Buffer>, meta: Tables["meta"]): Tables {
  const keyEncoder = { writeKey: writeId, readKey: idFromBytes };
  const byId = { encoding: "binary", keyEncoder } as const;
  const byKey = { encoding: "binary", keyEncoding: "binary" } as const;
  return {
    meta,
    applications: root.openDB("applications", byId),
    sessions: root.openDB("sessions", byId),
    byTenant: root.openDB("by-tenant", byKey),
    counts: root.openDB("counts", { ...byId, encoding: "string" }),
    applicationEnds: root.openDB("application-ends", byKey),
    sessionEnds: root.openDB("session-ends", byKey),
    endedApplications: root.openDB("ended-applications", byKey),
    endedSessions: root.openDB("ended-sessions", byKey),
    ends: root.openDB("ends", byKey),
    foreignKeys: root.openDB("foreign-keys", byKey),
    tenantEnds: root.openDB("tenant-ends", byKey),
    applicationFacts: root.openDB("application-facts", byKey),
    sessionsByTenant: root.openDB("sessions-by-tenant", byKey),
    sessionsByApplication: root.openDB("sessions-by-application", byKey),
    openSessions: root.openDB("open-sessions", byKey),
    orphaned: root.openDB("orphaned", byKey),
    changes: root.openDB("changes", { ...byKey, encoding: "string" }),
    events: root.openDB("events", byKey),
    eventIndex: root.openDB("event-index", byKey),
    answers: root.openDB("answers", byKey),
    answerEnds: root.openDB("answer-ends", byKey),
  };
}

interface EnvironmentParts {
  readonly path: string;
  readonly id: string;
  readonly root: RootDatabase<Buffer, Buffer>;
  readonly tables: Tables;
  readonly reserve: Reserve;
  readonly writeTimeout: number;
}

function createEnvironment(parts: EnvironmentParts): Environment {
  const { path, id, root, tables, reserve, writeTimeout } = parts;
  let closing: Promise<void> | undefined;
  const listeners: (() => void)[] = [];
  const queue = createWriteQueue(root, writeTimeout, reserve, () => {
    for (const listener of listeners) {
      listener();
    }
  });

  /** What LMDB and the system report has a number; all else is a mistake of ours, and stays as it is. */
  function translate(error: unknown): unknown {
    const thrown = thrownByCallback(error);
    if (thrown) {
      return thrown.reason;
    }
    if (typeof (error as { code?: unknown }).code !== "number") {
      return error;
    }
    const { code } = error as { code: number };
    const message = `The data in ${path} cannot be reached: ${messageOf(error)}. ${adviceFor(code)}`;
    return new StoreUnavailable(message.trimEnd(), { cause: error });
  }

  function refuseIfClosed(): void {
    if (closing) {
      throw new StoreUnavailable(`The data in ${path} has been closed.`);
    }
  }

  return {
    id,
    tables,

    read(work) {
      refuseIfClosed();
      try {
        // lmdb keeps its snapshot for a while, in which others may have written.
        root.resetReadTxn();
        return work();
      } catch (error) {
        throw translate(error);
      }
    },

    async write(work, kind = "ordinary") {
      refuseIfClosed();
      const result = await queue.run(work, kind).catch((error) => {
        throw translate(error);
      });
      if (result instanceof Refused) {
        throw result.reason;
      }
      return result;
    },

    onWrite(listener) {
      listeners.push(listener);
    },

    reserve,

    attempt: queue.attempt,

    close() {
      closing ??= within(writeTimeout, root.close()).catch((error) => {
        throw translate(error);
      });
      return closing;
    },
  };
}

/** Waits for what may hang as a write may. */
function within<T>(limit: number, work: Promise<T>): Promise<T> {
  const late = () => {
    throw lateness(limit);
  };
  return withTimeout(work, limit, late, { keepsRunning: true });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
