/** Reads the expirations of a tenant for one follower. */
import type { Change } from "../../port/changes.js";
import { type RecentExpiries, scanExpiries } from "./expiry-scan.js";
import type { FeedSource } from "./hub.js";

interface ExpiryReader {
  /** Expirations up to this moment were read. */
  readonly scannedTo: number;
  hasAllUntil(moment: number): boolean;
  /** Reads up to `limit` expirations. */
  read(limit: number): Promise<{ readonly changes: readonly Change[]; readonly missed: boolean }>;
}

/** Reads from the buffer of the hub. A reader that is further behind scans for itself. */
export function createExpiryReader(
  { db, time, freshRead }: FeedSource,
  recent: RecentExpiries,
  tenantId: string,
  start: number,
): ExpiryReader {
  /** Found, and not read yet. */
  let pending: readonly Change[] = [];
  /** Expirations up to this moment were found. */
  let foundTo = start;

  /** Returns whether expirations are missing. */
  async function find(): Promise<boolean> {
    const found = recent.read(foundTo, tenantId);
    if (found) {
      pending = found;
      foundTo = Math.max(foundTo, recent.scannedTo);
      return false;
    }
    const scan = await scanExpiries(db, time, foundTo, { tenantId, read: freshRead() });
    pending = scan.expiries.map(({ change }) => change);
    foundTo = scan.until;
    return scan.isGap;
  }

  return {
    get scannedTo() {
      const [next] = pending;
      return next ? next.at - 1 : foundTo;
    },

    hasAllUntil: (moment) => pending.length === 0 && foundTo >= moment,

    async read(limit) {
      const missed = pending.length === 0 && (await find());
      const changes = pending.slice(0, limit);
      pending = pending.slice(limit);
      return { changes, missed };
    },
  };
}
