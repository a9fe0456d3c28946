import { type ClientSession, MongoError } from "mongodb";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import type { CallerRecords, ChangeCaller, Trail } from "../port/audit.js";
import { AnswerKept, StoreUnavailable } from "../port/errors.js";
import type { EventWriter } from "./audit.js";
import type { AnswerDocuments } from "./idempotency.js";
import type { RunTransaction } from "./transaction-retry.js";

export interface Transactions {
  /**
   * Runs a change and writes its trail in one transaction, or runs it as it
   * is where there is no trail. Nothing takes effect, of the work or of the
   * trail, where the work answers `undefined` or throws. The work may be run
   * again; all that it asks of the database it asks in the session, one after
   * the other. Throws {@link AnswerKept}.
   */
  change<R>(
    /** The id of what is changed. */
    subject: string,
    trail: Trail<R> | undefined,
    work: ChangeWork<R>,
    /** Called whenever the work, and the writing of its trail, is over or has failed. */
    onAttemptEnd?: () => void,
  ): Promise<R | undefined>;
}

/**
 * What a transaction reads may be undone by the next primary. So work that
 * has written nothing, and answers `undefined` for what it read, waits until
 * that is `settled`. For work that throws of its own accord, which must have
 * written nothing either, that is waited for here.
 */
export type ChangeWork<R> = (
  session: ClientSession | undefined,
  settled: () => Promise<void>,
) => Promise<R | undefined>;

export interface TransactionParts {
  readonly runTransaction: RunTransaction;
  readonly events: EventWriter;
  readonly answers: AnswerDocuments;
  /** Reads the caller of a change, outside of its transaction: in there it would be seen as it was when that began. */
  readonly findCaller: (caller: ChangeCaller) => Promise<CallerRecords | undefined>;
  readonly now: () => MaybePromise<number>;
}

/** The caller is read again before the commit where the first read is older than this, in milliseconds. */
const longestSinceRead = 20;

export function createTransactions(parts: TransactionParts): Transactions {
  const { runTransaction, events, answers, findCaller, now } = parts;

  async function checkCaller(caller: ChangeCaller): Promise<void> {
    const found = await findCaller(caller);
    // Only keys that were replaced end before their application.
    const hasEnds = found?.application.keys.some(({ expiresAt }) => expiresAt !== undefined);
    caller.check(found, hasEnds ? await now() : 0);
  }

  /** Checks the caller while the last of its change is written, and once more where that took long. */
  async function checkWhile(caller: ChangeCaller, writing: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    // A transaction is not ended while something is written in it.
    const [checked, written] = await Promise.allSettled([checkCaller(caller), writing()]);
    for (const outcome of [written, checked]) {
      if (outcome.status === "rejected") {
        throw outcome.reason;
      }
    }
    if (performance.now() - startedAt > longestSinceRead) {
      await checkCaller(caller);
    }
  }

  return {
    async change(subject, trail, work, onAttemptEnd) {
      if (!trail) {
        return work(undefined, nothingToSettle).finally(onAttemptEnd);
      }
      const { answerId } = trail;
      const isGivenUp = () => trail.isGivenUp?.() ?? false;
      const workAndTrail = async (session: ClientSession, commit: () => Promise<void>) => {
        const settled = async () => {
          await commit();
          if (trail.caller) {
            await checkCaller(trail.caller);
          }
        };
        if (answerId !== undefined && (await answers.isKept(answerId, session))) {
          // So that whoever is told so finds it: what was read here may have been yet to reach a majority.
          await settled();
          throw new AnswerKept("The change was made before.");
        }
        const outcome = await settledIfRefused(work(session, settled), settled);
        if (outcome === undefined) {
          return undefined;
        }
        const entries = trail.entriesFor(outcome);
        const writeTrail = async () => {
          await events.insert(entries.events, session);
          if (answerId !== undefined && entries.answer) {
            await answers.keep(answerId, entries.answer, session);
          }
        };
        await (trail.caller ? checkWhile(trail.caller, writeTrail) : writeTrail());
        await commit();
        return outcome;
      };
      return runTransaction(workAndTrail, { subject, isGivenUp, onAttemptEnd });
    },
  };
}

/** Makes sure of what was read where the work itself throws for it, and not the database. */
async function settledIfRefused<R>(working: Promise<R>, settled: () => Promise<void>): Promise<R> {
  try {
    return await working;
  } catch (error) {
    if (!(error instanceof StoreUnavailable || error instanceof MongoError)) {
      await settled();
    }
    throw error;
  }
}

/** Without a transaction nothing is read but what a majority has. */
async function nothingToSettle(): Promise<void> {}
