import { type EventStore, largestEventBatch } from "../events.js";
import type { Environment } from "./environment.js";
import type { EventIndex } from "./event-index.js";
import { createEventList } from "./event-list.js";
import type { EventLog } from "./event-log.js";
import { createLogFeed } from "./log-feed.js";

export function createEventStore(
  environment: Environment,
  log: EventLog,
  index: EventIndex,
  addForEnds: EventStore["addForEnds"],
): EventStore {
  const followLog = createLogFeed(environment, log, {
    largest: largestEventBatch,
    continuesWith: () => true,
    // What is left is told, though some before it are gone.
    restart: (position) => Math.min(Math.max(position, log.first() - 1), log.last()),
  });

  return {
    async add(events) {
      await environment.write(() => {
        for (const event of events) {
          log.append(event);
        }
      });
    },

    list: createEventList(environment, log, index),

    async *follow(options) {
      for await (const { entries, missed, position } of followLog(options)) {
        yield { events: entries.map(({ event }) => event()), missed, position };
      }
    },

    addForEnds,
  };
}
