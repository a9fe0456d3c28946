import { constants } from "node:os";
import { resolve } from "node:path";
import { open, type RootDatabase } from "lmdb";
import { withTimeout } from "../../lib/timeout.js";
import { StoreUnavailable } from "../port/errors.js";
import { createReserve, type Reserve } from "./disk-reserve.js";
import { prepareFolder, syncFolder } from "./folder.js";
import {
  describeSchema,
  hasSupportedSchema,
  initializeMeta,
  maxReaders,
  maxTables,
  openTables,
  type Tables,
} from "./tables.js";
import { createWriteQueue, timeoutError, type WriteKind } from "./write-queue.js";

export interface Environment {
  /** Identifies this data. */
  readonly id: string;
  readonly tables: Tables;

  /** Runs reads on one snapshot, which includes every write that any process acknowledged before. */
  read<T>(work: () => T): T;

  /**
   * Runs reads and writes in one transaction, and resolves when it is on disk.
   * Concurrent calls share a commit, but work that throws rolls back only its
   * own writes. `work` must not return a promise. To refuse before it has
   * written anything, it returns {@link Refused}, which is cheaper than throwing.
   */
  write<T>(work: () => T | Refused, kind?: WriteKind): Promise<T>;

  /** Disk space for revocations. */
  readonly reserve: Pick<Reserve, "isOnlySpaceLeft" | "refill">;

  /** Adds a listener that runs after each durable commit of this process, before its writes resolve. */
  onWrite(listener: () => void): void;

  /**
   * Inside `write`, the number of the current attempt. Writes of one attempt
   * are rolled back together, so state that was cached under another number is stale.
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
    if (hasSupportedSchema(meta)) {
      const tables = openTables(root, meta);
      const id = await initializeMeta(root, meta);
      await syncFolder(path);
      const reserve = createReserve(path, root, tables);
      await reserve.refill();
      return createEnvironment({ path, id, root, tables, reserve, writeTimeout });
    }
    unknownSchema = describeSchema(meta);
  } catch (error) {
    await root?.close();
    throw new Error(
      `The data folder ${path} cannot be used (${messageOf(error)}): ` +
        "set DATA_DIR to a folder that this process can read and write, on a disk with free space.",
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
    // Sync each commit before it becomes visible. Overlapping syncs are no
    // faster here, and expose writes that a power failure may still undo.
    overlappingSync: false,
    // lmdb's own batches have an unhandled promise: a full disk would
    // crash the process.
    eventTurnBatching: false,
    // Address space, not disk or memory: the file grows as needed.
    mapSize: 2 ** 36,
    maxReaders,
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

  /** Errors of LMDB and the system have a numeric code. Any other error is a bug, and is not translated. */
  function translate(error: unknown): unknown {
    if (typeof (error as { code?: unknown }).code !== "number") {
      return error;
    }
    const { code } = error as { code: number };
    const message = `The data in ${path} is unavailable: ${messageOf(error)}. ${adviceFor(code)}`;
    return new StoreUnavailable(message.trimEnd(), { cause: error });
  }

  function refuseIfClosed(): void {
    if (closing) {
      throw new StoreUnavailable(`The data in ${path} is closed.`);
    }
  }

  return {
    id,
    tables,

    read(work) {
      refuseIfClosed();
      try {
        // lmdb reuses a snapshot for a while, but other processes may have written since.
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
      closing ??= closeRoot(root, writeTimeout).catch((error) => {
        throw translate(error);
      });
      return closing;
    },
  };
}

/** Closing can hang like a write. */
function closeRoot(root: RootDatabase, timeout: number): Promise<void> {
  const onTimeout = () => {
    throw timeoutError(timeout);
  };
  return withTimeout(root.close(), timeout, onTimeout, { keepsRunning: true });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The result of work that was refused before it wrote anything: `write` throws the reason. */
export class Refused {
  constructor(readonly reason: unknown) {}
}

/**
 * Runs a callback of the caller, inside `write` and before anything is written.
 * If it throws, the work is refused without a rollback, which would repeat all
 * work that shares the transaction.
 */
export function refuseOnThrow<T>(callback: () => T): T | Refused {
  try {
    return callback();
  } catch (reason) {
    return new Refused(reason);
  }
}

const { ENOSPC, EDQUOT, EFBIG, EIO, EROFS, EACCES, EPERM } = constants.errno;

// A partial write on a full disk surfaces as EIO.
const noSpaceCodes = new Set<number>([ENOSPC, EDQUOT, EFBIG, EIO]);
const noPermissionCodes = new Set<number>([EROFS, EACCES, EPERM]);

const recovery =
  "Acknowledged writes are safe, reads continue, and writes resume without a restart.";

/** Advises the operator about an error code of the system, or returns an empty text. */
function adviceFor(code: number): string {
  if (noSpaceCodes.has(code)) {
    return `Free space on its disk, and check the disk for errors. ${recovery}`;
  }
  if (noPermissionCodes.has(code)) {
    return `Allow this process to write there: the disk may have become read-only. ${recovery}`;
  }
  return "";
}
