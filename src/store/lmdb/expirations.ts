/** Adds events for applications and keys that expire soon or have expired. */
import { idFromBytes, nilUuid } from "../../lib/uuid.js";
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
import type { ApplicationRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";
import { hasOtherManager } from "./change.js";
import type { Environment } from "./environment.js";
import type { EventLog } from "./event-log.js";
import { timeIn } from "./indexes.js";
import type { RecordStore } from "./record-store.js";
import { trailingId } from "./row-keys.js";

/** Expirations read per transaction, so that requests do not wait long. */
const batchSize = 200;

/** The position of an application among those that expire, or have a key that does. */
interface Due {
  readonly at: number;
  readonly id: string;
}

/**
 * Reports expirations once. A checkpoint per lead time stores the position that
 * was read last, or a time up to which there was none.
 * Expirations that are added before the checkpoint belong to credentials that
 * were created, or whose expiry was moved earlier, within the lead time. They are
 * not reported.
 */
export function createExpirationEvents(
  { read, write, tables: { meta } }: Environment,
  records: RecordStore,
  log: EventLog,
  clock: Clock,
) {
  function checkpointOf(leadTime: number): Due | undefined {
    const [at, id] = meta.get(checkpointName(leadTime))?.split(" ") ?? [];
    return id !== undefined && isUsableCheckpoint(Number(at), leadTime, clock())
      ? { at: Number(at), id }
      : undefined;
  }

  function startOf(leadTime: number): Due {
    return checkpointOf(leadTime) ?? startAt(firstCheckpoint(leadTime, clock()));
  }

  function due(leadTime: number): Due[] {
    const range = { kind: "application", index: "expirations" } as const;
    const { at, id } = startOf(leadTime);
    const until = clock() + leadTime + 1;
    const after = { value: at, after: id };
    const keys = records.indexes.keys({ ...range, until }, { after, limit: batchSize });
    return Array.from(keys, (key) => ({ at: timeIn(key), id: idFromBytes(trailingId(key)) }));
  }

  /** Whether an expiration is due, or the checkpoint has fallen behind. */
  function isBehind(leadTime: number): boolean {
    const checkpoint = checkpointOf(leadTime);
    const isOld = !checkpoint || isFarBehind(checkpoint.at, leadTime, clock());
    return isOld || due(leadTime).length > 0;
  }

  /** Returns the expirations of an application and its keys that must be reported. */
  function expirationsAt({ at, id }: Due, leadTime: number): Expiration[] {
    const application = records.tables.application.find(id);
    if (!application) {
      return [];
    }
    const { tenantId, name, keys } = application;
    const applicationExpiresAt = application.expiresAt ?? Number.POSITIVE_INFINITY;
    const isDue = ({ expiresAt, createdAt }: Pick<ApplicationRecord, "expiresAt" | "createdAt">) =>
      expiresAt === at && isReportable({ at, createdAt, applicationExpiresAt }, leadTime, clock());
    const common = { tenantId, applicationId: id, name, at };
    const own = isDue(application)
      ? [{ ...common, leavesNoManager: leavesNoManager(application, at) }]
      : [];
    const ofKeys = keys
      .filter(isDue)
      .map((key) => ({ ...common, keyId: key.id, leavesNoManager: false }));
    return [...own, ...ofKeys];
  }

  function leavesNoManager(application: ApplicationRecord, at: number): boolean {
    return isManager(application) && !hasOtherManager(records, application, at);
  }

  function report(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): number {
    const found = due(leadTime);
    const expirations = found.flatMap((each) => expirationsAt(each, leadTime));
    for (const event of expirations.flatMap(toEvents)) {
      log.append(event);
    }
    const last = found.at(-1) ?? startOf(leadTime);
    const now = startAt(clock() + leadTime);
    const { at, id } = found.length < batchSize && now.at > last.at ? now : last;
    meta.put(checkpointName(leadTime), `${at} ${id}`);
    return found.length;
  }

  return async function addExpirationEvents(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): Promise<number> {
    return read(() => isBehind(leadTime)) ? write(() => report(leadTime, toEvents)) : 0;
  };
}

/** The position before all of a time. */
function startAt(at: number): Due {
  return { at, id: nilUuid };
}
