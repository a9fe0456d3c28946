import type { Logger } from "pino";
import { day } from "../../lib/time-units.js";
import type { EventStore, Expiration, NewEvent } from "../../store/port/events.js";

/** Writes events before and when applications and keys expire. */
export interface ExpiryWarnings {
  /** Checks now, and then periodically. */
  start(): void;

  /** Stops. Resolves when no write is in progress. */
  close(): Promise<void>;
}

interface ExpiryWarningOptions {
  readonly events: Pick<EventStore, "addExpirationEvents">;
  readonly log: Logger;
  /** The approximate time between two checks in milliseconds. */
  readonly interval?: number | undefined;
}

const defaultInterval = 30_000;

/** Milliseconds before the expiry; zero is the expiry itself. */
const leadTimes = [7 * day, day, 0] as const;

/** Every instance may run this. The store ensures that each event is written once. */
export function createExpiryWarnings({
  events,
  log,
  interval = defaultInterval,
}: ExpiryWarningOptions): ExpiryWarnings {
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | undefined;

  async function writeEvents(leadTime: number): Promise<number> {
    const unmanaged = new Map<string, Expiration>();
    const toEvents = toEventsAt(leadTime);
    const count = await events.addExpirationEvents(leadTime, (expiration) => {
      if (expiration.leavesNoManager) {
        unmanaged.set(expiration.applicationId, expiration);
      }
      return toEvents(expiration);
    });
    for (const { tenantId, applicationId, at } of unmanaged.values()) {
      log.warn(
        { tenant: tenantId, application: applicationId, expires_at: new Date(at).toISOString() },
        leadTime === 0 ? lastManagerExpired : lastManagerExpiring,
      );
    }
    return count;
  }

  async function check(): Promise<void> {
    try {
      for (const leadTime of leadTimes) {
        while (!isClosed && (await writeEvents(leadTime)) > 0) {}
      }
    } catch (err) {
      log.warn({ err }, "could not write expiry events to the audit log: retrying");
    }
  }

  function checkNow(): void {
    checking = check().then(() => {
      if (!isClosed) {
        // Jitter: instances that started together must not check in lockstep.
        timer = setTimeout(checkNow, interval * (0.75 + Math.random() / 2));
        timer.unref();
      }
    });
  }

  return {
    start: checkNow,

    async close() {
      isClosed = true;
      clearTimeout(timer);
      await checking;
    },
  };
}

const lastManagerExpired =
  "the last application of a tenant that could create and update applications has expired: " +
  "create a new one with `latchkey bootstrap --tenant UUID`";
const lastManagerExpiring =
  "the last application of a tenant that can create and update applications expires soon: " +
  "create another one with application:create and application:update";

/** Creates the events for a lead time. */
function toEventsAt(leadTime: number): (expiration: Expiration) => NewEvent[] {
  const suffix = leadTime === 0 ? "expired" : "expiring";
  return ({ tenantId, applicationId, name, keyId, at, leavesNoManager }) => {
    const prefixes = [
      keyId === undefined ? "application" : "key",
      ...(leavesNoManager ? ["last_manager"] : []),
    ];
    return prefixes.map((prefix) => ({
      tenantId,
      kind: `${prefix}.${suffix}`,
      outcome: "success",
      target: { applicationId, keyId, name },
      endsAt: at,
    }));
  };
}
