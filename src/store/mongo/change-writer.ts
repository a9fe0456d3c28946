/** Writes a change, its event and its stored response in one transaction. */
import { Binary, type ClientSession, type Collection, MongoError } from "mongodb";
import type { MaybePromise } from "../../lib/async.js";
import type {
  CallerRecords,
  ChangeCaller,
  NewResponse,
  ResponseStore,
  WriteContext,
} from "../port/change-context.js";
import { AlreadyApplied, ChangeCanceled, StoreUnavailable } from "../port/errors.js";
import type { NewEvent } from "../port/events.js";
import type { ApplicationRecord } from "../port/records.js";
import type { FreshRead } from "./connect.js";
import { notExpired, type Time } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import type { EventWriter } from "./event-documents.js";
import type { RunTransaction } from "./transaction-retry.js";

export interface ChangeWriter {
  /**
   * Runs a change and writes its event, if any, and its response in one
   * transaction. Nothing takes effect if the work returns `undefined` or throws.
   * The work may run more than once. It must send its commands in the session,
   * one after the other. Throws {@link AlreadyApplied}.
   */
  write<R>(
    /** The id of the changed record. */
    subject: string,
    context: WriteContext<R> & { eventFor?(outcome: R): NewEvent | undefined },
    work: ChangeWork<R>,
    options?: ChangeOptions<R>,
  ): Promise<R | undefined>;

  /** Checks the caller of a write without a transaction, given an application that was just read. */
  assertCaller(caller: ChangeCaller, read: ApplicationRecord): Promise<void>;
}

interface ChangeOptions<R> {
  /** Reads outside the transaction, during its last write. If it returns false, the change is undone. */
  readonly isValid?: (outcome: R) => Promise<boolean>;
  /** Called after every attempt, committed or not. */
  readonly onAttemptEnd?: () => void;
}

/**
 * A new primary may roll back data that a transaction has read. Work that
 * returns `undefined` because of its reads must first await `confirmReads`,
 * which commits what it wrote. If the work throws, {@link ChangeWriter.write}
 * does so, so it must not throw after a write.
 */
export type ChangeWork<R> = (
  session: ClientSession,
  confirmReads: () => Promise<void>,
) => Promise<R | undefined>;

interface ChangeWriterParts {
  readonly runTransaction: RunTransaction;
  readonly events: EventWriter;
  readonly responses: ResponseDocuments;
  /** Reads the caller of a change outside its transaction, which would see the state at its start. */
  readonly findCaller: (caller: ChangeCaller) => Promise<CallerRecords | undefined>;
  readonly now: () => MaybePromise<number>;
}

/** The caller is read again before the write if the first read is older than this, in milliseconds. */
export const maxCallerAge = 20;

export function createChangeWriter(parts: ChangeWriterParts): ChangeWriter {
  const { runTransaction, events, responses, findCaller, now } = parts;

  async function assertCaller(caller: ChangeCaller, read?: ApplicationRecord): Promise<void> {
    const { applicationId, sessionId } = caller;
    const isRead = read?.id === applicationId && sessionId === undefined;
    const found = isRead ? { application: read } : await findCaller(caller);
    // Only replaced keys expire before their application.
    const hasExpiry = found?.application.keys.some(({ expiresAt }) => expiresAt !== undefined);
    caller.assertAuthority(found, hasExpiry ? await now() : 0);
  }

  return {
    async write(subject, context, work, { isValid, onAttemptEnd } = {}) {
      const { caller, idempotencyId } = context;
      const isCanceled = () => context.isCanceled?.() ?? false;
      const workAndAudit = async (session: ClientSession, commit: () => Promise<void>) => {
        const confirmReads = async () => {
          await commit();
          if (caller) {
            await assertCaller(caller);
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
        const event = context.eventFor?.(outcome);
        const response = idempotencyId === undefined ? undefined : context.responseFor?.(outcome);
        const writeAudit = async () => {
          await events.insert(event ? [event] : [], session);
          if (idempotencyId !== undefined && response) {
            await responses.store(idempotencyId, response, session);
          }
        };
        const startedAt = performance.now();
        // A transaction must not end during a write.
        const [written, checked, valid] = await Promise.allSettled([
          writeAudit(),
          caller && assertCaller(caller),
          isValid?.(outcome) ?? true,
        ]);
        for (const settled of [written, checked, valid]) {
          if (settled.status === "rejected") {
            throw settled.reason;
          }
        }
        if (valid.status === "fulfilled" && !valid.value) {
          return undefined;
        }
        if (caller && performance.now() - startedAt > maxCallerAge) {
          await assertCaller(caller);
        }
        await commit();
        return outcome;
      };
      return runTransaction(workAndAudit, { subject, isCanceled, onAttemptEnd });
    },

    assertCaller,
  };
}

/** Confirms the reads if the work itself throws, and not because of the database or a canceled call. */
async function confirmIfRejected<R>(
  working: Promise<R>,
  confirmReads: () => Promise<void>,
): Promise<R> {
  try {
    return await working;
  } catch (error) {
    const unconfirmed = [StoreUnavailable, MongoError, ChangeCanceled];
    if (!unconfirmed.some((type) => error instanceof type)) {
      await confirmReads();
    }
    throw error;
  }
}

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
