import { setTimeout } from "node:timers/promises";
import { type ClientSession, type MongoClient, MongoError, type TransactionOptions } from "mongodb";
import { StoreUnavailable } from "../store.js";
import { limits, reach } from "./reach.js";
import { createTurns } from "./turns.js";

/** What each transaction asks for, whatever the URI says. */
const options: TransactionOptions = {
  readConcern: { level: "majority" },
  writeConcern: { w: "majority", journal: true, wtimeoutMS: limits.maxTimeMS },
  readPreference: "primary",
  maxCommitTimeMS: limits.maxTimeMS,
};

/** How long after it began a transaction may be tried again, in milliseconds. The driver would try for two minutes. */
const patience = 5_000;

/** The longest wait before the next attempt, in milliseconds. */
const longestPause = 50;

/** Does something in a transaction, which takes effect once it is committed. */
export type TransactionWork<R> = (
  session: ClientSession,
  commit: () => Promise<void>,
) => Promise<R>;

/**
 * Runs work in a transaction: what it leaves uncommitted, or throws in, has no
 * effect. Work that another transaction came between is run anew, and a commit
 * that was not answered is asked for again. What the work throws reaches the
 * caller as it is.
 */
export type RunTransaction = <R>(work: TransactionWork<R>) => Promise<R>;

export function createTransactionRunner(client: MongoClient): RunTransaction {
  // Those that met with another would meet again: of many who change the same
  // document, one would be served at a time and the others try in vain.
  const oneByOne = createTurns(1);

  return async (work) => {
    const deadline = performance.now() + patience;
    const run = () => {
      refuseAfter(deadline);
      return runOnce(client, deadline, work);
    };
    for (let attempt = 1; ; attempt++) {
      try {
        return await (attempt === 1 ? run() : oneByOne(run));
      } catch (error) {
        if (!hasLabel(error, "TransientTransactionError")) {
          throw error;
        }
        refuseAfter(deadline, error);
        await setTimeout(Math.random() * Math.min(2 ** attempt, longestPause));
      }
    }
  };
}

function refuseAfter(deadline: number, cause?: unknown): void {
  if (performance.now() > deadline) {
    throw new StoreUnavailable("MongoDB has not made the change in time.", { cause });
  }
}

async function runOnce<R>(
  client: MongoClient,
  deadline: number,
  work: TransactionWork<R>,
): Promise<R> {
  const session = client.startSession();
  session.startTransaction(options);
  let isOver = false;
  try {
    return await work(session, () => commit(session, deadline));
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

async function commit(session: ClientSession, deadline: number): Promise<void> {
  for (;;) {
    try {
      return await reach(() => session.commitTransaction());
    } catch (error) {
      if (!hasLabel(error, "UnknownTransactionCommitResult")) {
        throw error;
      }
      if (performance.now() > deadline) {
        const message = "MongoDB has not said whether it made the change.";
        throw new StoreUnavailable(message, { cause: error });
      }
    }
    await setTimeout(Math.random() * longestPause);
  }
}

/** Whether the driver says so of an error, or of the one that was made of it. */
function hasLabel(error: unknown, label: string): boolean {
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  return cause instanceof MongoError && cause.hasErrorLabel(label);
}
