import type { Logger } from "pino";
import type { Denials } from "../events/denials.js";
import type { Warnings } from "../events/warnings.js";
import { inTime } from "../in-time.js";
import type { Uses } from "../uses.js";

interface Writers {
  readonly uses: Uses;
  readonly denials: Denials;
  readonly warnings: Warnings;
  readonly log: Logger;
}

/** For how many milliseconds is written what waits. */
const patience = 2_000;

/** Has all write what waits. Where the store does not take it in time, as it may be away, it stays unwritten. */
export async function closeWriters({ uses, denials, warnings, log }: Writers): Promise<void> {
  const giveUp = new AbortController();
  const closing = [uses.close(giveUp.signal), denials.close(giveUp.signal), warnings.close()];
  const written = Promise.all(closing).then(() => true);
  if (!(await inTime(written, patience, () => false, { keepsRunning: true }))) {
    giveUp.abort();
    log.warn(
      { uses: uses.waiting, denials: denials.waiting },
      "the store took too long: not all uses of keys and refused calls are written",
    );
  }
}
