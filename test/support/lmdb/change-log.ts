import { open } from "lmdb";
import type { Change } from "../../../src/store/port/changes.js";

interface LogEntry extends Change {
  readonly number: number;
  readonly tenantId: string;
}

/**
 * Looks behind the store at the log of changes in a folder. To open it while
 * this process writes there would never end.
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
