import { isManager } from "../port/applications.js";
import type { Expiration, NewEvent } from "../port/events.js";
import {
  checkpointName,
  firstCheckpoint,
  isFarBehind,
  isReportable,
  isUsableCheckpoint,
} from "../port/expirations.js";
import type { ApplicationRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import { runCallback } from "./errors.js";
import type { EventLog } from "./event-log.js";
import { parseExpirationKey, timeBytes, timeOf } from "./keys.js";
import type { Records } from "./records.js";

/** Expirations read per transaction, so that requests do not wait long. */
const batchSize = 200;

/**
 * Reports expirations once. A checkpoint per lead time stores the key of the
 * last expiration that was read, or a time up to which there was none.
 * Expirations that are added before the checkpoint belong to credentials that
 * were created within the lead time, and are not reported.
 */
export function createExpirationEvents(
  { read, write, tables }: Environment,
  applications: Records<ApplicationRecord>,
  index: ApplicationIndex,
  log: EventLog,
  clock: Clock,
) {
  const { expirations, meta } = tables;

  function checkpointOf(lead: number): Buffer | undefined {
    const written = meta.get(checkpointName(lead));
    const checkpoint = written === undefined ? undefined : Buffer.from(written, "hex");
    return checkpoint && isUsableCheckpoint(timeOf(checkpoint), lead, clock())
      ? checkpoint
      : undefined;
  }

  function startOf(lead: number): Buffer {
    return checkpointOf(lead) ?? timeBytes(firstCheckpoint(lead, clock()));
  }

  function due(lead: number): Buffer[] {
    const end = timeBytes(clock() + lead + 1);
    return [
      ...expirations.getKeys({ start: startOf(lead), exclusiveStart: true, end, limit: batchSize }),
    ];
  }

  /** Whether an expiration is due, or the checkpoint has fallen behind. */
  function isBehind(lead: number): boolean {
    const checkpoint = checkpointOf(lead);
    const isOld = !checkpoint || isFarBehind(timeOf(checkpoint), lead, clock());
    return isOld || due(lead).length > 0;
  }

  /** The expiration of a row, unless it is not to be reported. */
  function expirationOf(key: Buffer, lead: number): Expiration | undefined {
    const { at, applicationId, keyId } = parseExpirationKey(key);
    const application = applications.find(applicationId);
    const subject =
      keyId === undefined ? application : application?.keys.find(({ id }) => id === keyId);
    if (!application || !subject) {
      return undefined;
    }
    const { tenantId, expiresAt: applicationExpiresAt = Number.POSITIVE_INFINITY } = application;
    const facts = { at, createdAt: subject.createdAt, applicationExpiresAt };
    if (!isReportable(facts, lead, clock())) {
      return undefined;
    }
    const leavesNoManager =
      keyId === undefined && isManager(application) && !index.hasOtherManager(application, at);
    return { tenantId, applicationId, keyId, at, leavesNoManager };
  }

  function report(lead: number, toEvents: (expiration: Expiration) => readonly NewEvent[]): number {
    const keys = due(lead);
    for (const key of keys) {
      const expiration = expirationOf(key, lead);
      if (expiration) {
        for (const event of runCallback(() => toEvents(expiration))) {
          log.append(event);
        }
      }
    }
    const last = keys.at(-1) ?? startOf(lead);
    const reached = keys.length < batchSize ? later(last, timeBytes(clock() + lead)) : last;
    meta.put(checkpointName(lead), reached.toString("hex"));
    return keys.length;
  }

  return async function addForEnds(
    lead: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): Promise<number> {
    return read(() => isBehind(lead)) ? write(() => report(lead, toEvents)) : 0;
  };
}

function later(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}
