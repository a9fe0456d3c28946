/** Makes changes of records: reads what their decisions need, and repeats them until nothing interferes. */
import { setTimeout } from "node:timers/promises";
import type { ClientSession } from "mongodb";
import { createKeyedSemaphore } from "../../lib/concurrency.js";
import { type Decided, decide } from "../core/decide.js";
import type { Change, MakeChange, Reads, RecordKind } from "../port/change.js";
import {
  AlreadyApplied,
  ChangeCanceled,
  SessionQuotaReached,
  StoreUnavailable,
} from "../port/errors.js";
import type { ReadRecords, RecordsRead } from "./change-reads.js";
import type { WriteChange } from "./change-writer.js";
import type { ResponseDocuments } from "./responses.js";
import { countedSessions, type SessionQuotas } from "./session-quotas.js";
import type { RunTransaction } from "./transaction-retry.js";

interface ChangeParts {
  readonly read: ReadRecords;
  readonly write: WriteChange;
  readonly runTransaction: RunTransaction;
  readonly responses: ResponseDocuments;
  readonly quotas: SessionQuotas;
  /** A change that others interfere with is not tried for longer, in milliseconds. */
  readonly retryTimeout: number;
}

/** The longest wait before the next attempt, in milliseconds. */
const maxBackoff = 50;

export function createChange(parts: ChangeParts): MakeChange {
  const { read, write, runTransaction, responses, quotas, retryTimeout } = parts;
  // Changes of the same record would interfere with each other.
  const onePerRecord = createKeyedSemaphore(1);

  /** Throws unless the change is new. */
  async function assertNotApplied(idempotencyId: string | undefined): Promise<void> {
    if (idempotencyId !== undefined && (await responses.isStored(idempotencyId))) {
      throw new AlreadyApplied("The change was already made.");
    }
  }

  async function decideOn<K extends RecordKind, N extends Reads, R>(
    change: Change<K, N, R>,
    found: RecordsRead,
  ): Promise<Decided<R>> {
    try {
      return decide(change, found.find, found.now);
    } catch (error) {
      // It may refuse because of an earlier attempt of the same call.
      await assertNotApplied(change.idempotencyId);
      throw error;
    }
  }

  /** Returns nothing if another change interfered. */
  async function attempt<K extends RecordKind, N extends Reads, R>(
    change: Change<K, N, R>,
    reservations: Reservations,
    session: ClientSession,
    commit: () => Promise<void>,
  ): Promise<{ readonly result: R } | undefined> {
    const { target, creates, idempotencyId } = change;
    const reads = Object.values(change.reads).filter((ref) => ref !== undefined);
    const [found] = await Promise.all([
      read(creates ? reads : [target, ...reads]),
      assertNotApplied(idempotencyId),
    ]);
    const decided = await decideOn(change, found);
    try {
      for (const limit of decided.provided ?? []) {
        reservations.add(await quotas.reserve(countedSessions(limit), limit.limit));
      }
    } catch (error) {
      if (error instanceof SessionQuotaReached && !(await found.areCurrent(target))) {
        return undefined;
      }
      throw error;
    }
    throwIfCanceled(change);
    const isWritten = await write(change, decided, found, { session, commit });
    return isWritten ? { result: decided.result } : undefined;
  }

  return (change) =>
    onePerRecord(change.target.id, async () => {
      const deadline = performance.now() + retryTimeout;
      const reservations = createReservations();
      const options = {
        subject: change.target.id,
        isCanceled: () => change.cancellation?.reason !== undefined,
        // Others would wait for the reservations and delay the next attempt.
        onAttemptEnd: reservations.release,
      };
      for (let attempts = 1; ; attempts++) {
        const made = await runTransaction(
          (session, commit) => attempt(change, reservations, session, commit),
          options,
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

function throwIfCanceled({
  cancellation,
}: Pick<Change<RecordKind, Reads, unknown>, "cancellation">) {
  if (cancellation?.reason !== undefined) {
    throw new ChangeCanceled("The change was canceled before it was written.");
  }
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
