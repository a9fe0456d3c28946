import { setTimeout } from "node:timers/promises";
import {
  type ClientSession,
  type MongoClient,
  MongoError,
  ReadConcern,
  type TransactionOptions,
} from "mongodb";
import { createKeyedSemaphore, createSemaphore } from "../../lib/semaphore.js";
import { StoreUnavailable } from "../port/errors.js";
import { limits, reach } from "./reach.js";

/** What each transaction asks for, whatever the URI says. */
const options: TransactionOptions = {
  readConcern: { level: "majority" },
  writeConcern: { w: "majority", journal: true, wtimeoutMS: limits.maxTimeMS },
  readPreference: "primary",
  maxCommitTimeMS: limits.maxTimeMS,
};

/** How long after it began a transaction may be tried again, in milliseconds. The driver would try for two minutes. */
const patience = 5_000;

/** For how long a transaction meets with others before it doubts that they are alive, in milliseconds. */
const trust = 1_000;

/** The longest wait before the next attempt, in milliseconds. */
const longestPause = 50;

/** Does something in a transaction, which takes effect once it is committed. */
type TransactionWork<R> = (session: ClientSession, commit: () => Promise<void>) => Promise<R>;

/**
 * Runs work in a transaction: what it leaves uncommitted, or throws in, has no
 * effect. Work that another transaction came between is run anew, and a commit
 * that was not answered is asked for again, while the work is not given up:
 * what a caller was told not to wait for is not to happen at some later time.
 * What the work throws reaches the caller as it is.
 */
export type RunTransaction = <R>(work: TransactionWork<R>, options?: RunOptions) => Promise<R>;

interface RunOptions {
  /** What is changed: those who meet with others that change the same go on one by one. */
  readonly subject?: string | undefined;
  readonly isGivenUp?: (() => boolean) | undefined;
  /** Called when an attempt is over, whether it was committed or not. */
  readonly onAttemptEnd?: (() => void) | undefined;
}

export function createTransactionRunner(client: MongoClient): RunTransaction {
  // Those that met with another would meet again: of many who change the same
  // document, one would be served at a time and the others try in vain.
  const oneByOne = createKeyedSemaphore(1);
  const fewAtOnce = createSemaphore(mostAtOnce(client.options.maxPoolSize));
  const endAbandoned = createAbandonedEnder(client);

  return async (work, { subject = "", isGivenUp = () => false, onAttemptEnd } = {}) => {
    const begunAt = performance.now();
    const deadline = begunAt + patience;
    const isTooLate = () => performance.now() > deadline || isGivenUp();
    const run = () =>
      fewAtOnce(() => {
        refuseIf(isTooLate());
        return runOnce(client, isTooLate, work).finally(onAttemptEnd);
      });
    for (let attempt = 1; ; attempt++) {
      try {
        return await (attempt === 1 ? run() : oneByOne(subject, run));
      } catch (error) {
        if (!hasLabel(error, "TransientTransactionError")) {
          throw error;
        }
        refuseIf(isTooLate(), error);
        if (isConflict(error) && performance.now() > begunAt + trust) {
          await endAbandoned();
        }
        await setTimeout(Math.random() * Math.min(2 ** attempt, longestPause));
      }
    }
  };
}

/** So few that a commit, with which others are let go, finds a connection. */
function mostAtOnce(poolSize: number): number {
  return poolSize === 0 ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(poolSize * 0.75));
}

function refuseIf(isTooLate: boolean, cause?: unknown): void {
  if (isTooLate) {
    throw new StoreUnavailable("MongoDB has not made the change in time.", { cause });
  }
}

async function runOnce<R>(
  client: MongoClient,
  isTooLate: () => boolean,
  work: TransactionWork<R>,
): Promise<R> {
  const session = client.startSession();
  session.startTransaction(options);
  let isOver = false;
  try {
    return await work(session, () => commit(session, isTooLate));
  } catch (error) {
    // The server has ended it, or does not answer: to say so once more is nothing to wait for.
    isOver = error instanceof StoreUnavailable || hasLabel(error, "TransientTransactionError");
    throw error;
  } finally {
    const ended = session.endSession();
    if (!isOver) {
      await ended;
    }
  }
}

async function commit(session: ClientSession, isTooLate: () => boolean): Promise<void> {
  for (;;) {
    try {
      return await reach(() => session.commitTransaction());
    } catch (error) {
      if (!isUnanswered(error)) {
        throw error;
      }
      if (isTooLate()) {
        const message = "MongoDB has not said whether it made the change.";
        throw new StoreUnavailable(message, { cause: error });
      }
    }
    await setTimeout(Math.random() * longestPause);
  }
}

/**
 * Whether a commit may have been made, or may yet be. That is also so where it
 * could not be sent, of which the driver takes no note: it then takes the
 * transaction for committed and would leave it open.
 */
function isUnanswered(error: unknown): boolean {
  return (
    hasLabel(error, "UnknownTransactionCommitResult") ||
    (error instanceof StoreUnavailable && !hasLabel(error, "TransientTransactionError"))
  );
}

/** Whether another transaction has changed the same, and is not over. */
function isConflict(error: unknown): boolean {
  const cause = causeOf(error);
  return cause instanceof MongoError && cause.code === 112;
}

/** Whether the driver says so of an error, or of the one that was made of it. */
function hasLabel(error: unknown, label: string): boolean {
  const cause = causeOf(error);
  return cause instanceof MongoError && cause.hasErrorLabel(label);
}

function causeOf(error: unknown): unknown {
  return error instanceof StoreUnavailable ? error.cause : error;
}

/** What every client of ours calls itself to the server, whatever appName its URI gives it. */
export const clientName = "latchkey";

/** A transaction of ours that has idled for so long has nobody who goes on with it, in milliseconds. */
const longestIdling = 2_000;

/** The shortest time between two looks, in milliseconds. */
const lookInterval = 500;

/** Ends the transactions that nobody goes on with, if there are any. It never fails. */
type EndAbandoned = () => Promise<void>;

/**
 * An instance that is killed, or cut off, in the midst of a transaction leaves
 * what it has written locked: the server ends such a transaction only when it
 * is a minute old or more, and until then nobody could revoke that key. So
 * whoever meets it looks for it. To find and to end the sessions of one's own
 * user takes no privilege. Where its owner is alive after all it is told that
 * the transaction is no more, and runs it anew.
 */
function createAbandonedEnder(client: MongoClient): EndAbandoned {
  const admin = client.db("admin", {
    readConcern: new ReadConcern("local"),
    readPreference: "primary",
  });
  let looking: Promise<void> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function look(): Promise<void> {
    const sessions = await admin.aggregate(abandoned, limits).toArray();
    if (sessions.length > 0) {
      await admin.command({ killSessions: sessions, ...limits });
    }
  }

  return async () => {
    if (!looking && performance.now() > lookedAt + lookInterval) {
      lookedAt = performance.now();
      looking = look()
        .catch(() => {})
        .finally(() => {
          looking = undefined;
        });
    }
    await looking;
  };
}

const abandoned = [
  { $currentOp: { allUsers: false, idleSessions: true } },
  {
    $match: {
      type: "idleSession",
      "clientMetadata.driver.name": { $regex: `\\|${clientName}$` },
      "transaction.timeInactiveMicros": { $gt: longestIdling * 1_000 },
    },
  },
  { $replaceWith: { id: "$lsid.id" } },
];
