/** Adds events for applications and keys that expire soon or have expired. */
import { isManager } from "../port/applications.js";
import {
  checkpointName,
  type Expiration,
  firstCheckpoint,
  isFarBehind,
  isReportable,
  isUsableCheckpoint,
  type NewEvent,
} from "../port/events.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import type { EventLog } from "./event-log.js";
import type { ApplicationRecords } from "./records.js";
import { parseExpirationKey, timeBytes, timeOf } from "./row-keys.js";

/** Expirations read per transaction, so that requests do not wait long. */
const batchSize = 200;

/**
 * Reports expirations once. A checkpoint per lead time stores the key of the
 * last expiration that was read, or a time up to which there was none.
 * Expirations that are added before the checkpoint belong to credentials that
 * were created, or whose expiry was moved earlier, within the lead time. They are
 * not reported.
 */
export function createExpirationEvents(
  { read, write, tables }: Environment,
  applications: ApplicationRecords,
  index: ApplicationIndex,
  log: EventLog,
  clock: Clock,
) {
  const { expirations, meta } = tables;

  function checkpointOf(leadTime: number): Buffer | undefined {
    const written = meta.get(checkpointName(leadTime));
    const checkpoint = written === undefined ? undefined : Buffer.from(written, "hex");
    return checkpoint && isUsableCheckpoint(timeOf(checkpoint), leadTime, clock())
      ? checkpoint
      : undefined;
  }

  function startOf(leadTime: number): Buffer {
    return checkpointOf(leadTime) ?? timeBytes(firstCheckpoint(leadTime, clock()));
  }

  function due(leadTime: number): Buffer[] {
    const end = timeBytes(clock() + leadTime + 1);
    return [
      ...expirations.getKeys({
        start: startOf(leadTime),
        exclusiveStart: true,
        end,
        limit: batchSize,
      }),
    ];
  }

  /** Whether an expiration is due, or the checkpoint has fallen behind. */
  function isBehind(leadTime: number): boolean {
    const checkpoint = checkpointOf(leadTime);
    const isOld = !checkpoint || isFarBehind(timeOf(checkpoint), leadTime, clock());
    return isOld || due(leadTime).length > 0;
  }

  /** Returns the expiration of a row if it must be reported. */
  function expirationOf(key: Buffer, leadTime: number): Expiration | undefined {
    const { at, applicationId, keyId } = parseExpirationKey(key);
    const application = applications.find(applicationId);
    const subject =
      keyId === undefined ? application : application?.keys.find(({ id }) => id === keyId);
    if (!application || !subject) {
      return undefined;
    }
    const {
      tenantId,
      name,
      expiresAt: applicationExpiresAt = Number.POSITIVE_INFINITY,
    } = application;
    const times = { at, createdAt: subject.createdAt, applicationExpiresAt };
    if (!isReportable(times, leadTime, clock())) {
      return undefined;
    }
    const leavesNoManager =
      keyId === undefined && isManager(application) && !index.hasOtherManager(application, at);
    return { tenantId, applicationId, name, keyId, at, leavesNoManager };
  }

  function report(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): number {
    const keys = due(leadTime);
    for (const key of keys) {
      const expiration = expirationOf(key, leadTime);
      if (expiration) {
        for (const event of toEvents(expiration)) {
          log.append(event);
        }
      }
    }
    const last = keys.at(-1) ?? startOf(leadTime);
    const reached =
      keys.length < batchSize ? laterCheckpoint(last, timeBytes(clock() + leadTime)) : last;
    meta.put(checkpointName(leadTime), reached.toString("hex"));
    return keys.length;
  }

  return async function addExpirationEvents(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): Promise<number> {
    return read(() => isBehind(leadTime)) ? write(() => report(leadTime, toEvents)) : 0;
  };
}

function laterCheckpoint(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}
