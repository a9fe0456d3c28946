/** Runs MongoDB transactions: retries them on conflicts, and repeats a commit whose result is unknown. */
import { setTimeout } from "node:timers/promises";
import {
  type ClientSession,
  type MongoClient,
  MongoError,
  ReadConcern,
  type TransactionOptions,
} from "mongodb";
import { createKeyedSemaphore, createSemaphore } from "../../lib/concurrency.js";
import { ChangeCanceled, StoreUnavailable } from "../port/errors.js";
import { callDriver, limitsOf, maxTimeOf } from "./driver-call.js";

/** The options of every transaction, which override the URI. */
function optionsOf(client: MongoClient): TransactionOptions {
  const maxTime = maxTimeOf(client);
  return {
    readConcern: { level: "majority" },
    writeConcern: { w: "majority", journal: true, wtimeoutMS: maxTime },
    readPreference: "primary",
    maxCommitTimeMS: maxTime,
  };
}

/** After conflicts for this time, in milliseconds, the other transaction may have been abandoned. */
const conflictTimeout = 1_000;

/** The longest wait before the next attempt, in milliseconds. */
const maxBackoff = 50;

type TransactionWork<R> = (session: ClientSession, commit: () => Promise<void>) => Promise<R>;

/**
 * Runs work in a transaction. The work has no effect until it commits; if it
 * throws, the transaction is aborted and the error reaches the caller unchanged.
 * Work that conflicts with another transaction runs again. A commit without a
 * response is sent again. Neither happens after the caller has canceled.
 */
export type RunTransaction = <R>(work: TransactionWork<R>, options?: RunOptions) => Promise<R>;

interface RunOptions {
  /** The id of the changed record. After a conflict, changes of the same record run one at a time. */
  readonly subject?: string | undefined;
  readonly isCanceled?: (() => boolean) | undefined;
  /** Called after every attempt, committed or not. */
  readonly onAttemptEnd?: (() => void) | undefined;
}

export function createTransactionRunner(client: MongoClient): RunTransaction {
  // Transactions that conflicted would conflict again: of many that change the
  // same document, only one can succeed at a time.
  const onePerSubject = createKeyedSemaphore(1);
  const concurrency = createSemaphore(maxConcurrent(client.options.maxPoolSize));
  const abortAbandoned = createAbandonedAborter(client);
  /** Retries stop after this time, in milliseconds. The driver would retry for two minutes. */
  const retryTimeout = 2 * maxTimeOf(client);

  return async (work, { subject = "", isCanceled = () => false, onAttemptEnd } = {}) => {
    const startedAt = performance.now();
    const deadline = startedAt + retryTimeout;
    const isTooLate = () => performance.now() > deadline || isCanceled();
    let lastError: unknown;
    const run = () =>
      concurrency(() => {
        if (lastError === undefined && isCanceled()) {
          throw new ChangeCanceled("The change was canceled before it was written.");
        }
        throwIf(isTooLate(), lastError);
        return runOnce(client, isTooLate, work).finally(onAttemptEnd);
      });
    for (let attempt = 1; ; attempt++) {
      try {
        return await (attempt === 1 ? run() : onePerSubject(subject, run));
      } catch (error) {
        if (!hasLabel(error, "TransientTransactionError")) {
          throw error;
        }
        lastError = error;
        throwIf(isTooLate(), error);
        if (isConflict(error) && performance.now() > startedAt + conflictTimeout) {
          await abortAbandoned();
        }
        await setTimeout(Math.random() * Math.min(2 ** attempt, maxBackoff));
      }
    }
  };
}

/** Leaves connections free for commits, which release the waiting transactions. */
function maxConcurrent(poolSize: number): number {
  return poolSize === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(poolSize * 0.75));
}

function throwIf(isTooLate: boolean, cause?: unknown): void {
  if (isTooLate) {
    throw new StoreUnavailable("MongoDB did not complete the change in time.", { cause });
  }
}

async function runOnce<R>(
  client: MongoClient,
  isTooLate: () => boolean,
  work: TransactionWork<R>,
): Promise<R> {
  const session = client.startSession();
  session.startTransaction(optionsOf(client));
  let isAborted = false;
  try {
    return await work(session, () => commit(session, isTooLate));
  } catch (error) {
    // The server has aborted the transaction, or does not respond: do not wait for the abort.
    isAborted = error instanceof StoreUnavailable || hasLabel(error, "TransientTransactionError");
    throw error;
  } finally {
    const ended = session.endSession();
    if (!isAborted) {
      await ended;
    }
  }
}

async function commit(session: ClientSession, isTooLate: () => boolean): Promise<void> {
  for (;;) {
    try {
      return await callDriver(() => session.commitTransaction());
    } catch (error) {
      if (!isUnknownResult(error)) {
        throw error;
      }
      if (isTooLate()) {
        const message = "MongoDB did not confirm the change. It may have been made.";
        throw new StoreUnavailable(message, { cause: error });
      }
    }
    await setTimeout(Math.random() * maxBackoff);
  }
}

/**
 * Whether a commit may have taken effect, now or later. Includes commits that
 * could not be sent: the driver regards such a transaction as committed and
 * would leave it open.
 */
function isUnknownResult(error: unknown): boolean {
  return (
    hasLabel(error, "UnknownTransactionCommitResult") ||
    (error instanceof StoreUnavailable && !hasLabel(error, "TransientTransactionError"))
  );
}

/** Whether another open transaction has changed the same document. */
function isConflict(error: unknown): boolean {
  const cause = causeOf(error);
  return cause instanceof MongoError && cause.code === 112;
}

function hasLabel(error: unknown, label: string): boolean {
  const cause = causeOf(error);
  return cause instanceof MongoError && cause.hasErrorLabel(label);
}

function causeOf(error: unknown): unknown {
  return error instanceof StoreUnavailable ? error.cause : error;
}

/** The driver name that all our clients send. Unlike `appName`, the URI cannot override it. */
export const clientName = "latchkey";

/** Our transactions count as abandoned after being idle for this time, in milliseconds. */
const maxIdleTime = 2_000;

/** The shortest time between two checks, in milliseconds. */
const minCheckInterval = 500;

/** Aborts abandoned transactions. Never fails. */
type AbortAbandoned = () => Promise<void>;

/**
 * An instance that is killed or disconnected during a transaction leaves its documents locked for a minute or
 * more, and those keys could not be revoked. A user may kill its own sessions without extra privileges. An owner
 * that is still running gets a transient error and retries.
 */
function createAbandonedAborter(client: MongoClient): AbortAbandoned {
  const admin = client.db("admin", {
    readConcern: new ReadConcern("local"),
    readPreference: "primary",
  });
  let checking: Promise<void> | undefined;
  let checkedAt = Number.NEGATIVE_INFINITY;

  async function check(): Promise<void> {
    const sessions = await admin.aggregate(abandoned, limitsOf({ db: admin })).toArray();
    if (sessions.length > 0) {
      await admin.command({ killSessions: sessions, ...limitsOf({ db: admin }) });
    }
  }

  return async () => {
    if (!checking && performance.now() > checkedAt + minCheckInterval) {
      checkedAt = performance.now();
      checking = check()
        .catch(() => {})
        .finally(() => {
          checking = undefined;
        });
    }
    await checking;
  };
}

const abandoned = [
  { $currentOp: { allUsers: false, idleSessions: true } },
  {
    $match: {
      type: "idleSession",
      "clientMetadata.driver.name": { $regex: `\\|${clientName}$` },
      "transaction.timeInactiveMicros": { $gt: maxIdleTime * 1_000 },
    },
  },
  { $replaceWith: { id: "$lsid.id" } },
];
