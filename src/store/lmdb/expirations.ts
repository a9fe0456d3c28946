import { isManager } from "../port/applications.js";
import type { Ending, NewEvent } from "../port/events.js";
import { firstMark, isFarBehind, isGoodMark, isToTell, markName } from "../port/expirations.js";
import type { ApplicationRecord } from "../port/records.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import { callBack } from "./errors.js";
import type { EventLog } from "./event-log.js";
import { momentBytes, momentOf, readEndKey } from "./keys.js";
import type { Records } from "./records.js";

/** Ends looked at in one transaction: few enough that requests need not wait long behind it. */
const batchSize = 200;

/**
 * Tells of what ends, by a mark for each lead: the key of the last end that
 * was looked at, or a moment up to which there was none. Ends that are set
 * behind the mark are those of what was made within the lead.
 */
export function createEndsTeller(
  { read, write, tables }: Environment,
  applications: Records<ApplicationRecord>,
  index: ApplicationIndex,
  log: EventLog,
  clock: Clock,
) {
  const { expirations, meta } = tables;

  function markOf(lead: number): Buffer | undefined {
    const written = meta.get(markName(lead));
    const mark = written === undefined ? undefined : Buffer.from(written, "hex");
    return mark && isGoodMark(momentOf(mark), lead, clock()) ? mark : undefined;
  }

  /** Where to go on. */
  function startOf(lead: number): Buffer {
    return markOf(lead) ?? momentBytes(firstMark(lead, clock()));
  }

  function due(lead: number): Buffer[] {
    const end = momentBytes(clock() + lead + 1);
    return [
      ...expirations.getKeys({ start: startOf(lead), exclusiveStart: true, end, limit: batchSize }),
    ];
  }

  /** Whether there is an end to look at, or the mark has fallen behind. */
  function isBehind(lead: number): boolean {
    const mark = markOf(lead);
    return !mark || isFarBehind(momentOf(mark), lead, clock()) || due(lead).length > 0;
  }

  /** What a key of `ends` tells of, where that is to come, or has come, to its end by itself. */
  function endingOf(key: Buffer, lead: number): Ending | undefined {
    const { at, applicationId, keyId } = readEndKey(key);
    const application = applications.find(applicationId);
    const subject =
      keyId === undefined ? application : application?.keys.find(({ id }) => id === keyId);
    if (!application || !subject) {
      return undefined;
    }
    const { tenantId, expiresAt: applicationEndsAt = Number.POSITIVE_INFINITY } = application;
    const facts = { at, createdAt: subject.createdAt, applicationEndsAt };
    if (!isToTell(facts, lead, clock())) {
      return undefined;
    }
    const leavesNoManager =
      keyId === undefined && isManager(application) && !index.hasOtherManager(application, at);
    return { tenantId, applicationId, keyId, at, leavesNoManager };
  }

  function tell(lead: number, toEvents: (ending: Ending) => readonly NewEvent[]): number {
    const keys = due(lead);
    for (const key of keys) {
      const ending = endingOf(key, lead);
      if (ending) {
        for (const event of callBack(() => toEvents(ending))) {
          log.append(event);
        }
      }
    }
    const last = keys.at(-1) ?? startOf(lead);
    const reached = keys.length < batchSize ? later(last, momentBytes(clock() + lead)) : last;
    meta.put(markName(lead), reached.toString("hex"));
    return keys.length;
  }

  return async function addForEnds(
    lead: number,
    toEvents: (ending: Ending) => readonly NewEvent[],
  ): Promise<number> {
    return read(() => isBehind(lead)) ? write(() => tell(lead, toEvents)) : 0;
  };
}

function later(one: Buffer, other: Buffer): Buffer {
  return Buffer.compare(one, other) < 0 ? other : one;
}
