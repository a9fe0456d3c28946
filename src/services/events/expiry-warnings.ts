import type { Logger } from "pino";
import type { Ending, EventStore, NewEvent } from "../../store/port/events.js";

/** Brings what is about to end, and what has ended, into the trail of its tenant. */
export interface ExpiryWarnings {
  /** Looks at once, and again and again. */
  start(): void;

  /** Resolves when nothing more is written. */
  close(): Promise<void>;
}

interface ExpiryWarningOptions {
  readonly events: Pick<EventStore, "addForEnds">;
  readonly log: Logger;
  /** About how many milliseconds lie between two looks. */
  readonly interval?: number | undefined;
}

const defaultInterval = 30_000;
const day = 24 * 3_600_000;

/** How long before an end it is told, in milliseconds; zero is the end itself. */
const leads = [7 * day, day, 0] as const;

/** Creates warnings. Any number of instances may give them: the store sees to it that each is given once. */
export function createExpiryWarnings({
  events,
  log,
  interval = defaultInterval,
}: ExpiryWarningOptions): ExpiryWarnings {
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;

  async function tell(lead: number): Promise<number> {
    const unmanaged = new Map<string, Ending>();
    const toEvents = toEventsAt(lead);
    const count = await events.addForEnds(lead, (ending) => {
      if (ending.leavesNoManager) {
        unmanaged.set(ending.applicationId, ending);
      }
      return toEvents(ending);
    });
    for (const { tenantId, applicationId, at } of unmanaged.values()) {
      log.warn(
        { tenant: tenantId, application: applicationId, expires_at: new Date(at).toISOString() },
        lead === 0 ? lockedOut : aboutToLockOut,
      );
    }
    return count;
  }

  async function look(): Promise<void> {
    try {
      for (const lead of leads) {
        while (!isClosed && (await tell(lead)) > 0) {}
      }
    } catch (err) {
      log.warn({ err }, "what is about to end could not be told in the trail of events");
    }
  }

  function lookNow(): void {
    looking = look().then(() => {
      if (!isClosed) {
        // Instances that were started together would look together for ever.
        timer = setTimeout(lookNow, interval * (0.75 + Math.random() / 2));
        timer.unref();
      }
    });
  }

  return {
    start: lookNow,

    async close() {
      isClosed = true;
      clearTimeout(timer);
      await looking;
    },
  };
}

const lockedOut =
  "the last application of a tenant that could create and update applications has expired: " +
  "make a new one with `latchkey bootstrap`";
const aboutToLockOut =
  "the last application of a tenant that can create and update applications is about to expire: " +
  "create another one that holds application:create and application:update";

/** Makes the events that are told so long before an end. */
function toEventsAt(lead: number): (ending: Ending) => NewEvent[] {
  const what = lead === 0 ? "expired" : "expiring";
  return ({ tenantId, applicationId, keyId, at, leavesNoManager }) => {
    const subjects = [
      keyId === undefined ? "application" : "key",
      ...(leavesNoManager ? ["last_manager"] : []),
    ];
    return subjects.map((subject) => ({
      tenantId,
      kind: `${subject}.${what}`,
      outcome: "success",
      target: { applicationId, keyId },
      endsAt: at,
    }));
  };
}
