/** The state of the model in change-log.ts. Times are numbers of writes, and ids those of changes. */
export interface Entry {
  readonly id: string;
  readonly time: number;
}

export interface Batch {
  readonly until: number;
  readonly entries: readonly { readonly id: string; readonly position: number }[];
  /** During a scan of the records, how many it has read, else -1. */
  readonly scanned: number;
}

export interface State {
  records: { version: number; last: Entry[]; is: "stored" | "deleted" | "purged" }[];
  /** The writes of the records. The time of a write is its number, from 1 on. */
  oplog: { readonly record: number; readonly last: Entry[] }[];
  /** Writes up to here are no longer in the oplog. */
  overwritten: number;
  /** The position document: what the log contains, and the batch that is being added. */
  position: Batch & { complete: number; next: number };
  log: { readonly id: string; readonly position: number }[];
  /** The last position that readers have been allowed to read. */
  published: number;
  writers: Writer[];
  leaders: Leader[];
  lists: { is: "new" | "waiting" | "reading" | "done"; time: number; expected: string[] }[];
  applied: string[];
  acknowledged: string[];
  crashes: number;
  losses: number;
  problem: string;
}

export interface Writer {
  is: "reading" | "writing" | "written" | "done";
  version: number;
  last: Entry[];
}

export interface Leader {
  is: "idle" | "adding" | "publishing" | "reading" | "recording" | "lost" | "scanning";
  /** No other leader has written the position document since this one did. */
  isCurrent: boolean;
  batch: Batch;
  next: number;
  /** Entries of the batch that it has yet to add. */
  left: number[];
}

export type ChangeLogBug =
  | "forgets the last change"
  | "forgets a young change without knowing the position"
  | "refuses changes while the log is far behind, but carries nothing"
  | "removes tombstones by age"
  | "positions from the stream, no recorded batch"
  | "records a batch whatever was recorded before"
  | "new leader ignores the recorded batch"
  | "saves the position before the entries"
  | "restarts at the end of the oplog after a loss"
  | "publishes the position during a scan"
  | "starts the stream after the scan"
  | "lists do not wait";

export interface ChangeLogOptions {
  readonly changes: readonly { readonly record: number; readonly isDelete?: boolean }[];
  readonly leaders?: number;
  readonly lists?: number;
  readonly crashes?: number;
  /** How often the oplog may be overwritten up to its end. */
  readonly losses?: number;
  readonly batchSize?: number;
  readonly bug?: ChangeLogBug;
}

export const noBatch: Batch = { until: 0, entries: [], scanned: -1 };

export const newLeader = (): Leader => ({
  is: "idle",
  isCurrent: false,
  batch: noBatch,
  next: 0,
  left: [],
});

export const idsOf = (entries: readonly { readonly id: string }[]) => entries.map(({ id }) => id);
