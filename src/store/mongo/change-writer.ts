/** Writes a change, its events and its stored response in one transaction. */
import { Binary, type ClientSession, type Collection, MongoError } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import type {
  CallerRecords,
  ChangeCaller,
  ChangeContext,
  NewResponse,
  ResponseStore,
} from "../port/change-context.js";
import { AlreadyApplied, StoreUnavailable } from "../port/errors.js";
import type { FreshRead } from "./connect.js";
import { notExpired, type Time } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import type { EventWriter } from "./event-documents.js";
import type { RunTransaction } from "./transaction-retry.js";

export interface Transactions {
  /**
   * Runs a change and writes its audit entries in one transaction; without
   * audit entries, runs it directly. Nothing takes effect if the work returns
   * `undefined` or throws. The work may run more than once. It must send its
   * commands in the session, one after the other. Throws {@link AlreadyApplied}.
   */
  change<R>(
    /** The id of the changed record. */
    subject: string,
    audit: ChangeContext<R> | undefined,
    work: ChangeWork<R>,
    /** Called after every attempt, committed or not. */
    onAttemptEnd?: () => void,
  ): Promise<R | undefined>;
}

/**
 * A new primary may roll back data that a transaction has read. Work that
 * returns `undefined` because of its reads, and has written nothing, must first
 * await `confirmReads`. If the work throws, {@link Transactions.change} does so.
 */
export type ChangeWork<R> = (
  session: ClientSession | undefined,
  confirmReads: () => Promise<void>,
) => Promise<R | undefined>;

interface TransactionParts {
  readonly runTransaction: RunTransaction;
  readonly events: EventWriter;
  readonly responses: ResponseDocuments;
  /** Reads the caller of a change outside its transaction, which would see the state at its start. */
  readonly findCaller: (caller: ChangeCaller) => Promise<CallerRecords | undefined>;
  readonly now: () => MaybePromise<number>;
}

/** The caller is read again before the commit if the first read is older than this, in milliseconds. */
const maxCallerAge = 20;

export function createTransactions(parts: TransactionParts): Transactions {
  const { runTransaction, events, responses, findCaller, now } = parts;

  async function checkCaller(caller: ChangeCaller): Promise<void> {
    const found = await findCaller(caller);
    // Only replaced keys expire before their application.
    const hasExpiry = found?.application.keys.some(({ expiresAt }) => expiresAt !== undefined);
    caller.check(found, hasExpiry ? await now() : 0);
  }

  /** Checks the caller during the last write of its change, and again if that write was slow. */
  async function checkWhile(caller: ChangeCaller, writing: () => Promise<void>): Promise<void> {
    const startedAt = performance.now();
    // A transaction must not end during a write.
    const [checked, written] = await Promise.allSettled([checkCaller(caller), writing()]);
    for (const outcome of [written, checked]) {
      if (outcome.status === "rejected") {
        throw outcome.reason;
      }
    }
    if (performance.now() - startedAt > maxCallerAge) {
      await checkCaller(caller);
    }
  }

  return {
    async change(subject, audit, work, onAttemptEnd) {
      if (!audit) {
        return work(undefined, alreadyConfirmed).finally(onAttemptEnd);
      }
      const { idempotencyId } = audit;
      const isCanceled = () => audit.isCanceled?.() ?? false;
      const workAndAudit = async (session: ClientSession, commit: () => Promise<void>) => {
        const confirmReads = async () => {
          await commit();
          if (audit.caller) {
            await checkCaller(audit.caller);
          }
        };
        if (idempotencyId !== undefined && (await responses.isStored(idempotencyId, session))) {
          // The response may not have reached a majority yet, and the caller reads it next.
          await confirmReads();
          throw new AlreadyApplied("The change was already made.");
        }
        const outcome = await confirmIfRejected(work(session, confirmReads), confirmReads);
        if (outcome === undefined) {
          return undefined;
        }
        const entries = audit.entriesFor(outcome);
        const writeAudit = async () => {
          await events.insert(entries.events, session);
          if (idempotencyId !== undefined && entries.response) {
            await responses.store(idempotencyId, entries.response, session);
          }
        };
        await (audit.caller ? checkWhile(audit.caller, writeAudit) : writeAudit());
        await commit();
        return outcome;
      };
      return runTransaction(workAndAudit, { subject, isCanceled, onAttemptEnd });
    },
  };
}

/** Confirms the reads if the work itself throws, and not the database. */
async function confirmIfRejected<R>(
  working: Promise<R>,
  confirmReads: () => Promise<void>,
): Promise<R> {
  try {
    return await working;
  } catch (error) {
    if (!(error instanceof StoreUnavailable || error instanceof MongoError)) {
      await confirmReads();
    }
    throw error;
  }
}

/** Without a transaction, reads return only majority-committed data. */
async function alreadyConfirmed(): Promise<void> {}

interface ResponseDocument {
  readonly _id: Binary;
  readonly sealed: Binary;
  readonly expires_at: Date;
}

/** The stored responses of idempotent changes, each written in the transaction of its change. */
interface ResponseDocuments extends ResponseStore {
  isStored(id: string, session: ClientSession): Promise<boolean>;
  /** Replaces an expired response. The same transaction must have called `isStored`. */
  store(id: string, response: NewResponse, session: ClientSession): Promise<void>;
}

export function createResponseDocuments(
  documents: Collection<ResponseDocument>,
  time: Time,
  freshRead: FreshRead,
): ResponseDocuments {
  return {
    async find(id) {
      const filter = { _id: idOf(id), ...notExpired(time) };
      const found = await callDriver(() =>
        documents.findOne(filter, { ...limitsOf(documents), ...freshRead() }),
      );
      return found ? found.sealed.value() : undefined;
    },

    async isStored(id, session) {
      const filter = { _id: idOf(id), ...notExpired(time) };
      const options = { projection: { _id: 1 }, ...limitsOf(documents, session) };
      return (await callDriver(() => documents.findOne(filter, options))) !== null;
    },

    async store(id, { sealed, ttl }, session) {
      const fields = { _id: idOf(id), sealed: new Binary(sealed) };
      const expires_at = { $add: [time(), ttl] };
      await callDriver(() =>
        documents.updateOne(
          { _id: fields._id },
          [{ $replaceWith: { $mergeObjects: [{ $literal: fields }, { expires_at }] } }],
          { upsert: true, ...limitsOf(documents, session) },
        ),
      );
    },
  };
}

const idOf = (id: string): Binary => new Binary(Buffer.from(id, "hex"));
