import { constants } from "node:os";

/** Carries what a callback threw out of a transaction, whose own errors have another meaning. */
class CallbackError extends Error {
  override readonly name = "CallbackError";

  constructor(readonly reason: unknown) {
    super("A callback threw.");
  }
}

/** Says, as the answer of work that has written nothing, that it was refused: `write` throws the reason. */
export class Refused {
  constructor(readonly reason: unknown) {}
}

/**
 * Asks, inside `write` and before anything is written, the one who wants the
 * work done. To take back a transaction for a refusal would cost all who share
 * it.
 */
export function askFirst<T>(callback: () => T): T | Refused {
  try {
    return callback();
  } catch (reason) {
    return new Refused(reason);
  }
}

/**
 * Asks, inside `write`, the one who wants the work done. What it throws takes
 * back what the work has written, and reaches who called `write` as it is.
 */
export function callBack<T>(callback: () => T): T {
  try {
    return callback();
  } catch (reason) {
    throw new CallbackError(reason);
  }
}

/** What a callback threw, where it is that which ended a transaction. */
export function thrownByCallback(error: unknown): { readonly reason: unknown } | undefined {
  return error instanceof CallbackError ? error : undefined;
}

const { ENOSPC, EDQUOT, EFBIG, EIO, EROFS, EACCES, EPERM } = constants.errno;

// A write that does not fit as a whole fails as any other that is cut short.
const noRoom = new Set<number>([ENOSPC, EDQUOT, EFBIG, EIO]);
const noLeave = new Set<number>([EROFS, EACCES, EPERM]);

const goesOn =
  "What was acknowledged is kept, reads go on, and writes work again without a restart.";

/** What an operator can do about an error of the system, or nothing where that is not known. */
export function adviceFor(code: number): string {
  if (noRoom.has(code)) {
    return `Make room on its disk, and see that the disk is sound. ${goesOn}`;
  }
  if (noLeave.has(code)) {
    return `Let this process write there: the disk may have become read-only. ${goesOn}`;
  }
  return "";
}
