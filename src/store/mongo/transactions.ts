import type { ClientSession } from "mongodb";
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
    trail: Trail<R> | undefined,
    work: (session: ClientSession | undefined) => Promise<R | undefined>,
  ): Promise<R | undefined>;
}

export interface TransactionParts {
  readonly runTransaction: RunTransaction;
  readonly events: EventWriter;
  readonly answers: AnswerDocuments;
}

export function createTransactions(parts: TransactionParts): Transactions {
  const { runTransaction, events, answers } = parts;

  return {
    async change(trail, work) {
      if (!trail) {
        return work(undefined);
      }
      const { answerId } = trail;
      return runTransaction(async (session, commit) => {
        if (answerId !== undefined && (await answers.isKept(answerId, session))) {
          // So that whoever is told so finds it: what was read here may have been yet to reach a majority.
          await commit();
          throw new AnswerKept("The change was made before.");
        }
        const outcome = await work(session);
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
      });
    },
  };
}
