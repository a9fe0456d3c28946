import {
  type ClientSession,
  MongoBulkWriteError,
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
} from "mongodb";
import { createTimerQueue } from "../../lib/timeout.js";
import { StoreUnavailable } from "../port/errors.js";

/** For every call: the server gives up before the socket does. */
export const limits = { maxTimeMS: 2_500 } as const;

/** The same, for a call that may be a part of a transaction. */
export const limitsIn = (session: ClientSession | undefined) =>
  session ? { session, ...limits } : limits;

/**
 * Longer than the driver's own timeouts for both of its attempts, in
 * milliseconds. The driver never answers a call that it sends on a connection
 * which MongoDB has just closed: none of its timeouts covers that.
 */
const hangTimeouts = createTimerQueue(30_000);

/**
 * Calls the driver; where the data cannot be reached, throws
 * {@link StoreUnavailable}. It never calls again: the driver retries once, and
 * knows whether the first attempt took effect, which we do not.
 */
export async function reach<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await withTimeout(call());
  } catch (error) {
    if (!meansUnreachable(error)) {
      throw error;
    }
    throw new StoreUnavailable("MongoDB cannot be reached now.", { cause: error });
  }
}

/** Every authentication on MongoDB waits here, so all calls share one timer. */
function withTimeout<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timeout = hangTimeouts.start(() =>
      reject(new StoreUnavailable("MongoDB did not answer in time.")),
    );
    answer.then(resolve, reject).finally(() => timeout.cancel());
  });
}

const unreachableErrors = [
  MongoClientClosedError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerClosedError,
  MongoServerSelectionError,
  MongoStalePrimaryError,
  MongoTopologyClosedError,
];

/** Thrown by the driver's connection pool, which does not export their classes. */
const unreachableNames = new Set(["MongoPoolClosedError", "MongoWaitQueueTimeoutError"]);

/** The server said these of itself, of the members behind it, or of what it has ended or lost of ours meanwhile. */
const unreachableCodes = new Set<unknown>([
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

const unreachableLabels = ["HandshakeError", "RetryableError", "RetryableWriteError"];

function meansUnreachable(error: unknown): boolean {
  if (error instanceof MongoBulkWriteError && error.errorResponse instanceof Error) {
    // What kept all of several writes from being sent.
    return meansUnreachable(error.errorResponse);
  }
  if (error instanceof MongoServerError && unreachableCodes.has(error.code)) {
    return true;
  }
  if (error instanceof MongoError) {
    return (
      unreachableErrors.some((type) => error instanceof type) ||
      unreachableNames.has(error.name) ||
      unreachableLabels.some((label) => error.hasErrorLabel(label))
    );
  }
  // A primary that dies may break a socket under the driver, whose error then comes as Node made it.
  const { syscall, code } = Object(error) as Partial<NodeJS.ErrnoException>;
  return syscall !== undefined || closedSocket.test(String(code));
}
