import type { EventRecord } from "../events.js";
import type { EventPlace } from "../transfer.js";
import type { EventLog } from "./event-log.js";

/** Finds and restores events within one transaction. */
export interface RestoredEvents {
  find(place: EventPlace): EventRecord | undefined;
  restore(event: EventRecord): void;
}

/** Thousands may have one moment, so those of a moment are looked through once for all that are restored. */
export function createRestoredEvents(events: EventLog): RestoredEvents {
  const moments = new Map<string, Map<string, number>>();

  /** The numbers of all events of that moment, by their ids. */
  function numbersBeside(place: EventPlace): Map<string, number> {
    const moment = `${place.tenantId} ${place.at}`;
    const numbers = moments.get(moment) ?? events.numbersBeside(place);
    moments.set(moment, numbers);
    return numbers;
  }

  return {
    find(place) {
      const number = numbersBeside(place).get(place.id);
      return number === undefined ? undefined : events.find(number)?.event();
    },

    restore(event) {
      numbersBeside(event).set(event.id, events.restore(event));
    },
  };
}
