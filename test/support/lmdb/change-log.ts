import { open } from "lmdb";
import { decodeEvent } from "../../../src/store/lmdb/event-log.js";
import { type Change, changeOf } from "../../../src/store/port/changes.js";

/** An event, and the credential change that it records, if any. */
interface LogEntry extends Partial<Change> {
  readonly number: number;
  readonly tenantId: string;
}

/**
 * Reads the audit log of a store directly from its folder. Opening it hangs while this
 * process writes to the store.
 */
export function openChangeLog(path: string) {
  const database = open({ path, noSubdir: false, overlappingSync: false });
  const byKey = { encoding: "binary", keyEncoding: "binary" } as const;
  const events = database.openDB<Buffer, Buffer>({ name: "events", ...byKey });
  return {
    entries(): LogEntry[] {
      database.resetReadTxn();
      return Array.from(events.getRange(), ({ key, value }) => {
        const event = decodeEvent(value);
        const number = Number(key.readBigUInt64BE());
        return { number, tenantId: event.tenantId, ...changeOf(event) };
      });
    },

    close: () => database.close(),
  };
}
