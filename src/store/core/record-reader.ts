import type { MaybePromise } from "../../lib/async.js";
import { yieldToEventLoop } from "../../lib/event-loop.js";
import type { RecordKind, Records } from "../port/change.js";
import type { IndexName, Value } from "../tables.js";

/** The reads that an engine provides for lists. They find every stored record, expired and revoked ones too. */
export interface RecordReader {
  /** The store's clock. */
  now(): MaybePromise<number>;

  find<K extends RecordKind>(kind: K, id: string): MaybePromise<Records[K] | undefined>;

  /** Reads the records of all tenants after an id, in the order of their ids. Fewer if they are large. */
  readAfter<K extends RecordKind>(
    kind: K,
    id: string | undefined,
    limit: number,
  ): MaybePromise<readonly Records[K][]>;

  /** Reads the next records of a range. Ends early, after the first one, if they are large or take long. */
  scan<K extends RecordKind>(scan: Scan<K>): MaybePromise<ScannedRecords<K>>;

  /** The stored size of a record in bytes. */
  sizeOf(record: Records[RecordKind]): number;

  /** Counts the records of a range without reading them. */
  count<K extends RecordKind>(range: Range<K>): MaybePromise<number>;
}

/** The records that an index finds by one value, or by those of an interval. */
export interface Range<K extends RecordKind = RecordKind> {
  readonly kind: K;
  readonly index: IndexName<K>;
  /** Absent for an index that spans all tenants. */
  readonly tenantId?: string | undefined;
  readonly value?: Value | undefined;
  /** Texts that start with it. */
  readonly prefix?: string | undefined;
  /** Times from this one. */
  readonly since?: number | undefined;
  /** Times before this one. */
  readonly until?: number | undefined;
}

/** A position in an index. The value is absent if a range has only one. */
export interface Position {
  readonly value?: Value | undefined;
  /** The id of the record, which need not exist any more. */
  readonly after: string;
}

export interface Scan<K extends RecordKind = RecordKind> extends Range<K> {
  /** From the greatest value and id, not from the least. */
  readonly isBackward?: boolean | undefined;
  readonly after?: Position | undefined;
  /** How many records to leave out, which costs far less than to read them. */
  readonly skip?: number | undefined;
  readonly limit: number;
}

export interface ScannedRecords<K extends RecordKind> {
  readonly records: readonly Records[K][];
  /** Whether no more records follow. */
  readonly isEnd: boolean;
}

/** The most records that one scan reads: few of many may match. */
export const maxScanned = 500;

interface ScanOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether the first batch is as short as other calls, so that it needs no tick of its own. */
  readonly startsAtOnce?: boolean | undefined;
}

/** Reads all records of a range, batch by batch. Each batch is read in a tick of its own. */
export async function* scanAll<K extends RecordKind>(
  reader: Pick<RecordReader, "scan">,
  first: Omit<Scan<K>, "limit"> & { readonly limit?: number },
  positionOf: (record: Records[K]) => Position,
  { signal, startsAtOnce = false }: ScanOptions = {},
): AsyncGenerator<readonly Records[K][], void> {
  let scan: Scan<K> = { limit: maxScanned, ...first };
  for (let isNext = !startsAtOnce; ; isNext = true) {
    if (isNext) {
      await yieldToEventLoop(scan.tenantId);
      signal?.throwIfAborted();
    }
    const { records, isEnd } = await reader.scan(scan);
    yield records;
    const last = records.at(-1);
    if (isEnd || !last) {
      return;
    }
    scan = { ...first, skip: undefined, after: positionOf(last), limit: maxScanned };
  }
}
