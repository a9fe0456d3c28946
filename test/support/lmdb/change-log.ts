import { open } from "lmdb";
import type { Change } from "../../../src/store/port/changes.js";

interface LogEntry extends Change {
  readonly number: number;
  readonly tenantId: string;
}

/**
 * Reads the change log of a store directly from its folder. Opening it hangs while this
 * process writes to the store.
 */
export function openChangeLog(path: string) {
  const database = open({ path, noSubdir: false, overlappingSync: false });
  const changes = database.openDB<string, Buffer>({
    name: "changes",
    encoding: "string",
    keyEncoding: "binary",
  });
  return {
    entries(): LogEntry[] {
      database.resetReadTxn();
      return Array.from(changes.getRange(), ({ key, value }) => ({
        number: Number(key.readBigUInt64BE()),
        ...JSON.parse(value),
      }));
    },

    close: () => database.close(),
  };
}
