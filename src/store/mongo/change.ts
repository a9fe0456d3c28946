/** Makes changes of records: reads what their decisions need, and repeats them until nothing interferes. */
import { setTimeout } from "node:timers/promises";
import { Binary } from "mongodb";
import { createKeyedSemaphore } from "../../lib/concurrency.js";
import { type Decided, decide } from "../core/decide.js";
import type { Change, MakeChange, Reads, RecordKind, RecordRef } from "../port/change.js";
import { AlreadyApplied, ChangeCanceled, Refusal, StoreUnavailable } from "../port/errors.js";
import type { ReadRecords, RecordsRead } from "./change-reads.js";
import type { ChangeWriter } from "./change-writer.js";
import type { StoredResponse } from "./documents.js";
import type { ChangeLog } from "./log/change-log.js";
import type { EntriesAfter } from "./log/record-entries.js";
import { idOf, type ResponseDocuments } from "./responses.js";
import { countedSessions, type SessionQuotas } from "./session-quotas.js";

interface ChangeParts {
  readonly read: ReadRecords;
  readonly writer: ChangeWriter;
  readonly entriesAfter: EntriesAfter;
  readonly log: Pick<ChangeLog, "lag">;
  readonly responses: ResponseDocuments;
  readonly quotas: SessionQuotas;
  /** A change that others interfere with is not tried for longer, in milliseconds. */
  readonly retryTimeout: number;
}

/** The longest wait before the next attempt, in milliseconds. */
const maxBackoff = 50;

/**
 * The records that a decision used are read again before the write if they were
 * read longer ago than this, in milliseconds.
 */
const maxAge = 100;

/** If the log is further behind, in milliseconds, only changes that remove access are made. */
const maxLag = 5 * 60_000;

type AnyChange = Change<RecordKind, Reads, unknown>;

export function createChange(parts: ChangeParts): MakeChange {
  const { read, writer, entriesAfter, log, responses, quotas, retryTimeout } = parts;
  // Changes of the same record would interfere with each other.
  const onePerRecord = createKeyedSemaphore(1);

  /**
   * Throws if an earlier attempt has made the change. The document is read before the stored
   * responses: the next change of the record stores the response before it replaces the document.
   */
  async function assertNotApplied(
    { idempotencyId }: AnyChange,
    target: RecordRef,
    found: RecordsRead,
  ): Promise<void> {
    if (idempotencyId === undefined) {
      return;
    }
    const { last = [] } = found.documentOf(target) ?? {};
    const response = last
      .flatMap((entry) => entry.response ?? [])
      .find(({ _id }) => _id.toString("hex") === idempotencyId);
    if (response && response.expires_at.getTime() > found.now) {
      await responses.store([response]);
      throw alreadyApplied();
    }
    if (await responses.isStored(idempotencyId)) {
      throw alreadyApplied();
    }
  }

  /** Returns nothing if another change interfered. */
  async function attempt<K extends RecordKind, N extends Reads, R>(
    change: Change<K, N, R>,
    reservations: Reservations,
    isFirst: boolean,
  ): Promise<{ readonly result: R } | undefined> {
    const { creates, idempotencyId, revokes } = change;
    const any = change as unknown as AnyChange;
    const id = await targetId(change);
    const target = { kind: change.target.kind, id };
    const reads = Object.values(change.reads).filter((ref) => ref !== undefined);
    // A new id is not in use, unless an earlier attempt has used it.
    const isNew = creates && isFirst && idempotencyId === undefined;
    const found = await read(isNew ? reads : [target, ...reads]);
    await assertNotApplied(any, target, found);
    if (log.lag > maxLag && !revokes) {
      throw new StoreUnavailable("The audit log is too far behind.");
    }
    try {
      const decided = decide(change, found.find, found.now, id);
      for (const limit of decided.provided ?? []) {
        reservations.add(await quotas.reserve(countedSessions(limit), limit.limit));
      }
      throwIfCanceled(change);
      const { event, result } = decided;
      const response = responseOf(any, decided, found.now);
      if (!decided.change) {
        return response && !(await responses.storeNew(response)) ? undefined : { result };
      }
      const { last = [] } = found.documentOf(target) ?? {};
      const { now } = found;
      const entries = await entriesAfter(last, { event, response, now, revokes });
      const isOld = () => performance.now() - found.startedAt > maxAge;
      if (
        !(await writer.prepare(decided)) ||
        (isOld() && !(await found.areCurrent(target))) ||
        !(await writer.write({ target, creates }, decided.change, found, entries))
      ) {
        return undefined;
      }
      await responses.store(response ? [response] : []);
      return { result };
    } catch (error) {
      if (error instanceof StoreUnavailable || error instanceof ChangeCanceled) {
        throw error;
      }
      // Perhaps because of an earlier attempt of the same call, or of what has changed since.
      if (idempotencyId !== undefined || error instanceof Refusal) {
        const again = await read([target]);
        await assertNotApplied(any, target, again);
        const isSame = again.documentOf(target)?.rev === found.documentOf(target)?.rev;
        if ((!isNew && !isSame) || !(await found.areCurrent(target))) {
          return undefined;
        }
      }
      throw error;
    }
  }

  /** All attempts of an idempotent call create the same record. */
  async function targetId({
    target,
    creates,
    idempotencyId,
  }: Pick<AnyChange, "target" | "creates" | "idempotencyId">) {
    if (!creates || idempotencyId === undefined) {
      return target.id;
    }
    const id = await responses.reserve(idempotencyId, target.id);
    if (id === undefined) {
      throw alreadyApplied();
    }
    return id;
  }

  return (change) =>
    onePerRecord(change.target.id, async () => {
      const deadline = performance.now() + retryTimeout;
      const reservations = createReservations();
      for (let attempts = 1; ; attempts++) {
        // Released after each attempt: others would wait for them and delay the next one.
        const made = await attempt(change, reservations, attempts === 1).finally(
          reservations.release,
        );
        if (made) {
          return made.result;
        }
        if (performance.now() > deadline) {
          throw new StoreUnavailable("Other changes interfered with the change for too long.");
        }
        await setTimeout(Math.random() * Math.min(2 ** attempts, maxBackoff));
        throwIfCanceled(change);
      }
    });
}

const alreadyApplied = () => new AlreadyApplied("The change was already made.");

function throwIfCanceled({ cancellation }: Pick<AnyChange, "cancellation">): void {
  if (cancellation?.reason !== undefined) {
    throw new ChangeCanceled("The change was canceled before it was written.");
  }
}

function responseOf(
  { idempotencyId }: AnyChange,
  { response }: Decided<unknown>,
  now: number,
): StoredResponse | undefined {
  return idempotencyId === undefined || !response
    ? undefined
    : {
        _id: idOf(idempotencyId),
        sealed: new Binary(response.sealed),
        expires_at: new Date(now + response.ttl),
      };
}

type Reservations = ReturnType<typeof createReservations>;

/** The reservations of one attempt. */
function createReservations() {
  let held: (() => void)[] = [];
  return {
    add: (release: () => void) => held.push(release),

    release(): void {
      for (const release of held) {
        release();
      }
      held = [];
    },
  };
}
