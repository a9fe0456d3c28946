/** Calls the MongoDB driver with time limits, and maps its errors to {@link StoreUnavailable}. */

import {
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  MongoBulkWriteError,
  type MongoClient,
  MongoClientClosedError,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
  type OptionalUnlessRequiredId,
} from "mongodb";
import { createTimerQueue } from "../../lib/timeout.js";
import { StoreUnavailable } from "../port/errors.js";

/** The options of every call: a time limit, and its session, if any. */
export function limitsOf({ db }: { readonly db: Db }, session?: ClientSession) {
  const maxTimeMS = maxTimeOf(db.client);
  return session ? { session, maxTimeMS } : { maxTimeMS };
}

/** In milliseconds, unless the URI sets another one. */
export const defaultSocketTimeout = 3_000;

/**
 * The milliseconds after which the server stops a call: before the socket times
 * out. A URI may disable the socket timeout with 0, but calls keep a limit.
 */
export function maxTimeOf({ options }: MongoClient): number {
  return Math.round((options.socketTimeoutMS || defaultSocketTimeout) * (5 / 6));
}

/**
 * In milliseconds; longer than both attempts of the driver take with the default
 * timeouts. A call never settles if MongoDB closes its connection just before it
 * is sent: none of the driver's timeouts covers that.
 */
const hangTimeouts = createTimerQueue(30_000);

/**
 * Throws {@link StoreUnavailable} if the database cannot be reached. Does not
 * retry: the driver retries once, and only the driver can detect whether the
 * first attempt took effect.
 */
export async function callDriver<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await rejectIfHung(call());
  } catch (error) {
    if (!isUnavailable(error)) {
      throw error;
    }
    throw new StoreUnavailable("MongoDB is unavailable.", { cause: error });
  }
}

/** Every authentication passes here, so all calls share one timer. */
function rejectIfHung<T>(call: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timeout = hangTimeouts.start(() =>
      reject(new StoreUnavailable("MongoDB did not respond in time.")),
    );
    call.then(resolve, reject).finally(() => timeout.cancel());
  });
}

const unavailableErrors = [
  MongoClientClosedError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerSelectionError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
];

/** Thrown by the driver's connection pool. The driver does not export their classes. */
const unavailableNames = new Set(["MongoPoolClosedError", "MongoWaitQueueTimeoutError"]);

/** Codes of a server that is not available, or that has lost one of our cursors, sessions or transactions. */
const unavailableCodes = new Set<unknown>([
  6, // HostUnreachable
  7, // HostNotFound
  24, // LockTimeout
  43, // CursorNotFound
  50, // MaxTimeMSExpired
  64, // WriteConcernTimeout
  89, // NetworkTimeout
  91, // ShutdownInProgress
  94, // NotYetInitialized
  100, // UnsatisfiableWriteConcern
  112, // WriteConflict
  133, // FailedToSatisfyReadPreference
  134, // ReadConcernMajorityNotAvailableYet
  175, // QueryPlanKilled
  187, // LinearizableReadConcernError
  189, // PrimarySteppedDown
  202, // NetworkInterfaceExceededTimeLimit
  217, // IncompleteTransactionHistory
  225, // TransactionTooOld
  237, // CursorKilled
  239, // SnapshotTooOld
  246, // SnapshotUnavailable
  251, // NoSuchTransaction
  262, // ExceededTimeLimit
  267, // PreparedTransactionInProgress
  279, // ClientDisconnect
  290, // TransactionExceededLifetimeLimitSeconds
  9001, // SocketException
  10058, // LegacyNotPrimary
  10107, // NotWritablePrimary
  11600, // InterruptedAtShutdown
  11601, // Interrupted
  11602, // InterruptedDueToReplStateChange
  13388, // StaleConfig
  13435, // NotPrimaryNoSecondaryOk
  13436, // NotPrimaryOrSecondary
]);

/** Node's codes for writes to a socket that was closed. Not all of them name a system call. */
const closedSocket = /^(EPIPE|ERR_STREAM_[A-Z_]+)$/;

const unavailableLabels = ["HandshakeError", "RetryableError", "RetryableWriteError"];

function isUnavailable(error: unknown): boolean {
  if (error instanceof MongoBulkWriteError && error.errorResponse instanceof Error) {
    // The error that prevented the entire bulk write.
    return isUnavailable(error.errorResponse);
  }
  if (error instanceof MongoServerError && unavailableCodes.has(error.code)) {
    return true;
  }
  if (error instanceof MongoError) {
    return (
      unavailableErrors.some((type) => error instanceof type) ||
      unavailableNames.has(error.name) ||
      unavailableLabels.some((label) => error.hasErrorLabel(label))
    );
  }
  // When a primary dies, the driver may pass on Node's own socket error.
  const { syscall, code } = Object(error) as Partial<NodeJS.ErrnoException>;
  return syscall !== undefined || closedSocket.test(String(code));
}

export const duplicateKey = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === duplicateKey;
}

/** Inserts documents in order, except those whose ids exist. */
export async function insertNew<D extends Document>(
  collection: Collection<D>,
  documents: readonly D[],
): Promise<void> {
  if (documents.length === 0) {
    return;
  }
  try {
    const options = { ordered: false, ...limitsOf(collection) };
    const inserted = documents as unknown as OptionalUnlessRequiredId<D>[];
    await callDriver(() => collection.insertMany(inserted, options));
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    if (errors.length === 0 || errors.some(({ code }) => code !== duplicateKey)) {
      throw error;
    }
  }
}

/** Inserts a document. Returns false if its id exists. */
export async function insertIfAbsent<D extends Document>(
  collection: Collection<D>,
  document: D,
): Promise<boolean> {
  try {
    const inserted = document as unknown as OptionalUnlessRequiredId<D>;
    await callDriver(() => collection.insertOne(inserted, limitsOf(collection)));
    return true;
  } catch (error) {
    if (isDuplicateKey(error)) {
      return false;
    }
    throw error;
  }
}
