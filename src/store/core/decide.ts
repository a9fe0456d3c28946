/** Runs the decision of a change, and derives what must hold when it is written. */
import { claimedExternalId, stopsManaging } from "../port/applications.js";
import type {
  Change,
  Decision,
  LiveRecords,
  Reads,
  RecordKind,
  RecordRef,
  Snapshot,
} from "../port/change.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";

/** Reads a live record with those that it depends on. */
export type FindLive = <K extends RecordKind>(ref: RecordRef<K>) => LiveRecords[K] | undefined;

/** A record before and after a change. One of them may be missing. */
export type RecordChange =
  | {
      readonly kind: "application";
      readonly id: string;
      readonly before: ApplicationRecord | undefined;
      readonly after: ApplicationRecord | undefined;
    }
  | {
      readonly kind: "session";
      readonly id: string;
      readonly before: SessionRecord | undefined;
      readonly after: SessionRecord | undefined;
    };

/** A decided change. */
export interface Decided<R> extends Omit<Decision<RecordKind, R>, "put"> {
  /** Absent if the record stays as it is. */
  readonly change?: RecordChange;
  /** Whether the tenant of the application needs another manager. */
  readonly needsOtherManager: boolean;
  /** The external id that no other application of the tenant may have. */
  readonly claimedExternalId?: string | undefined;
}

/** Decides a change on live records. Throws to refuse. */
export function decide<K extends RecordKind, N extends Reads, R>(
  { target, reads, decide }: Change<K, N, R>,
  find: FindLive,
  now: number,
  id: string = target.id,
): Decided<R> {
  const live = find<K>({ kind: target.kind, id });
  const snapshot: Record<string, unknown> = { id, target: live };
  for (const name in reads) {
    const ref = reads[name];
    snapshot[name] = ref && find(ref);
  }
  const { put, ...decision } = decide(snapshot as unknown as Snapshot<K, N>, now);
  if (put === undefined) {
    return { ...decision, needsOtherManager: false };
  }
  if (target.kind === "session") {
    const before = (live as LiveRecords["session"] | undefined)?.session;
    const after = (put ?? undefined) as SessionRecord | undefined;
    const change = { kind: "session", id, before, after } as const;
    return { ...decision, change, needsOtherManager: false };
  }
  const before = live as ApplicationRecord | undefined;
  const after = (put ?? undefined) as ApplicationRecord | undefined;
  return {
    ...decision,
    change: { kind: "application", id, before, after },
    needsOtherManager: stopsManaging(before, after),
    claimedExternalId: after && claimedExternalId(before, after),
  };
}
