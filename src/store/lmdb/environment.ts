import { resolve } from "node:path";
import { open, type RootDatabase } from "lmdb";
import { withTimeout } from "../../lib/timeout.js";
import { StoreUnavailable } from "../port/errors.js";
import { adviceFor, Refused, thrownByCallback } from "./errors.js";
import { prepareFolder, syncFolder } from "./folder.js";
import { createReserve, type Reserve } from "./reserve.js";
import {
  describeSchema,
  hasKnownSchema,
  initializeMeta,
  maxTables,
  openTables,
  type Tables,
} from "./tables.js";
import { createWriteQueue, lateness, type WriteKind } from "./write-queue.js";

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

/** Opens a data folder. The errors it throws are written for the operator. */
export async function openEnvironment(folder: string, writeTimeout: number): Promise<Environment> {
  const path = resolve(folder);
  let root: RootDatabase<Buffer, Buffer> | undefined;
  let unknownSchema: string;
  try {
    await prepareFolder(path);
    root = openRoot(path);
    const meta = root.openDB<string, string>("meta", { encoding: "string" });
    if (hasKnownSchema(meta)) {
      const tables = openTables(root, meta);
      const id = await initializeMeta(root, meta);
      await syncFolder(path);
      const reserve = createReserve(path, root, tables);
      await reserve.restore();
      return createEnvironment({ path, id, root, tables, reserve, writeTimeout });
    }
    unknownSchema = describeSchema(meta);
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
    `The data folder ${path} has ${unknownSchema}. ` +
      "Set DATA_DIR to another folder, or run the version that wrote this one.",
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
    maxDbs: maxTables,
    permissionsMode: 0o600,
  } as const;
  return open(options);
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
