import { type ResumeToken, Timestamp } from "mongodb";

/** How far the telling of changes has come. */
export interface Position {
  /** The mark of the last event of the change stream that was told. */
  readonly mark: string;
  /** The moment up to which expiries were told. */
  readonly scannedTo: number;
}

/**
 * A place among the events of a change stream: the cluster time, then a number
 * for each of the events that share it. Marks sort as text in the order of
 * events. They take the place of resume tokens, which name the document last
 * changed, of whatever tenant.
 */
export function markOf(clusterTime: string, ordinal: number): string {
  return clusterTime + hex(ordinal);
}

/** After every event of a cluster time. */
export const lastOrdinal = 0xffff_ffff;

/** A cluster time as the first part of a mark. */
export function clusterTimeOf({ t, i }: Timestamp): string {
  return hex(t) + hex(i);
}

export function clusterTimeOfMark(mark: string): string {
  return mark.slice(0, 16);
}

export function timestampOf(clusterTime: string): Timestamp {
  return new Timestamp({
    t: Number.parseInt(clusterTime.slice(0, 8), 16),
    i: Number.parseInt(clusterTime.slice(8, 16), 16),
  });
}

/** The cluster time up to which a resume token vouches for the stream. */
export function clusterTimeOfToken(token: ResumeToken): string {
  const { _data: data } = token as { readonly _data?: unknown };
  const [, clusterTime] = /^82([0-9A-F]{16})/i.exec(String(data)) ?? [];
  if (!clusterTime) {
    throw new Error("MongoDB gave a resume token of a form that is not known.");
  }
  return clusterTime.toLowerCase();
}

export function formatPosition({ mark, scannedTo }: Position): string {
  return `${mark}.${scannedTo}`;
}

export function parsePosition(text: string): Position | undefined {
  const [, mark, scannedTo] = /^([0-9a-f]{24})\.([0-9]{1,16})$/.exec(text) ?? [];
  return mark && scannedTo ? { mark, scannedTo: Number(scannedTo) } : undefined;
}

/** What lies behind one of two positions at least. */
export function latest(one: Position, other: Position): Position {
  return {
    mark: one.mark > other.mark ? one.mark : other.mark,
    scannedTo: Math.max(one.scannedTo, other.scannedTo),
  };
}

function hex(number: number): string {
  return number.toString(16).padStart(8, "0");
}
