/** Decides imports of records, from what an engine has read for them. The rules are in port/import.ts. */
import type { RecordKind, Records } from "../port/change.js";
import type { NewEvent } from "../port/events.js";
import {
  importEvent,
  isWritten,
  mergeApplication,
  mergeSession,
  outcomeOfApplication,
  outcomeOfSession,
} from "../port/import.js";
import {
  type ApplicationFields,
  isUnexpired,
  nextVersion,
  type SessionFields,
} from "../port/records.js";
import type { ImportOptions, ImportOutcome } from "../port/transfer.js";
import { parentIdsOf } from "./liveness.js";

/** What an import needs to know of the store. */
export interface ImportReads {
  now(): number;

  find<K extends RecordKind>(kind: K, id: string): Records[K] | undefined;

  /** The ids of the applications that may have an imported key with a hash. */
  ownersOfKey(hash: Uint8Array): readonly string[];

  /** Whether another live application of the tenant has the external id of one. */
  isExternalIdTaken(application: ApplicationFields): boolean;

  /** Whether the audit log has a successful event of one of these kinds about a record. */
  hasEvent(record: ImportedFields, kinds: readonly string[]): boolean;
}

type ImportedFields = ApplicationFields | SessionFields;

/** What an import of one record does. */
export interface ImportDecision<K extends RecordKind> {
  readonly outcome: ImportOutcome;
  /** Absent if nothing is written. */
  readonly before?: Records[K] | undefined;
  readonly after?: Records[K];
  /** Reports that a stored record was replaced. */
  readonly event?: NewEvent;
}

type Decide<K extends RecordKind> = (
  record: Omit<Records[K], "version">,
  options: Pick<ImportOptions, "replace">,
) => ImportDecision<K>;

export function createImportDecisions(reads: ImportReads): {
  readonly [K in RecordKind]: Decide<K>;
} {
  const contextOf = (record: ImportedFields, replace: boolean) => ({
    replace,
    now: reads.now(),
    hasEvent: (kinds: readonly string[]) => reads.hasEvent(record, kinds),
  });

  function hasTakenKey({ id, keys }: ApplicationFields): boolean {
    const owners = keys.flatMap(({ imported, hash }) => (imported ? reads.ownersOfKey(hash) : []));
    const isLive = (owner: string) => isUnexpired(reads.find("application", owner), reads.now());
    return owners.some((owner) => owner !== id && isLive(owner));
  }

  function outcomeOf(record: ApplicationFields, outcome: ImportOutcome): ImportOutcome {
    if (isWritten(outcome) && hasTakenKey(record)) {
      return "key_taken";
    }
    return isWritten(outcome) && reads.isExternalIdTaken(record) ? "external_id_taken" : outcome;
  }

  /** Whether an application is live and belongs to the tenant of a session. */
  function isOwner(id: string, { tenantId }: SessionFields): boolean {
    const owner = reads.find("application", id);
    return isUnexpired(owner, reads.now()) && owner.tenantId === tenantId;
  }

  function decided<K extends RecordKind>(
    outcome: ImportOutcome,
    before: Records[K] | undefined,
    merge: () => Omit<Records[K], "version">,
  ): ImportDecision<K> {
    if (!isWritten(outcome)) {
      return { outcome };
    }
    const after = { ...merge(), version: nextVersion(before, reads.now()) } as Records[K];
    return { outcome, before, after, ...(outcome === "replaced" && { event: importEvent(after) }) };
  }

  return {
    application(record, { replace }) {
      const before = reads.find("application", record.id);
      const outcome = outcomeOfApplication(before, record, contextOf(record, replace));
      return decided(outcomeOf(record, outcome), before, () => mergeApplication(before, record));
    },

    session(record, { replace }) {
      const isOwned = parentIdsOf("session", record).every((id) => isOwner(id, record));
      const before = reads.find("session", record.id);
      const outcome = isOwned
        ? outcomeOfSession(before, record, contextOf(record, replace))
        : "ownerless";
      return decided(outcome, before, () => mergeSession(before, record));
    },
  };
}
