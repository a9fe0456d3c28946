import { constants } from "node:os";

/** Carries an error of a callback out of a transaction, to tell it from errors of LMDB. */
class CallbackError extends Error {
  override readonly name = "CallbackError";

  constructor(readonly reason: unknown) {
    super("A callback threw.");
  }
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

/**
 * Runs a callback of the caller, inside `write`. If it throws, the work is
 * rolled back, and `write` throws the same error.
 */
export function runCallback<T>(callback: () => T): T {
  try {
    return callback();
  } catch (reason) {
    throw new CallbackError(reason);
  }
}

/** The error of a callback, if it aborted the transaction. */
export function callbackErrorOf(error: unknown): { readonly reason: unknown } | undefined {
  return error instanceof CallbackError ? error : undefined;
}

const { ENOSPC, EDQUOT, EFBIG, EIO, EROFS, EACCES, EPERM } = constants.errno;

// A partial write on a full disk surfaces as EIO.
const noSpaceCodes = new Set<number>([ENOSPC, EDQUOT, EFBIG, EIO]);
const noPermissionCodes = new Set<number>([EROFS, EACCES, EPERM]);

const recovery =
  "Acknowledged writes are safe, reads continue, and writes resume without a restart.";

/** What an operator can do about an error code of the system, or an empty text. */
export function adviceFor(code: number): string {
  if (noSpaceCodes.has(code)) {
    return `Free space on its disk, and check the disk for errors. ${recovery}`;
  }
  if (noPermissionCodes.has(code)) {
    return `Allow this process to write there: the disk may have become read-only. ${recovery}`;
  }
  return "";
}
