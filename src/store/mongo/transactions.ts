import { type ClientSession, MongoError } from "mongodb";
import { StoreUnavailable } from "../store.js";
import { AnswerKept, type Trail } from "../trail.js";
import type { AnswerDocuments } from "./answers.js";
import type { EventWriter } from "./event-writer.js";
import type { RunTransaction } from "./run-transaction.js";

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
}

export function createTransactions(parts: TransactionParts): Transactions {
  const { runTransaction, events, answers } = parts;

  return {
    async change(subject, trail, work) {
      if (!trail) {
        return work(undefined, nothingToSettle);
      }
      const { answerId } = trail;
      const isGivenUp = () => trail.isGivenUp?.() ?? false;
      const workAndTrail = async (session: ClientSession, commit: () => Promise<void>) => {
        if (answerId !== undefined && (await answers.isKept(answerId, session))) {
          // So that whoever is told so finds it: what was read here may have been yet to reach a majority.
          await commit();
          throw new AnswerKept("The change was made before.");
        }
        const outcome = await settledIfRefused(work(session, commit), commit);
        if (outcome === undefined) {
          return undefined;
        }
        const entries = trail.entriesFor(outcome);
        await events.insert(entries.events, session);
        if (answerId !== undefined && entries.answer) {
          await answers.keep(answerId, entries.answer, session);
        }
        await commit();
        return outcome;
      };
      return runTransaction(workAndTrail, { subject, isGivenUp });
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
