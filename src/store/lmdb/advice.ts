import { constants } from "node:os";

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
