import type { Db } from "mongodb";
import type { EventStore } from "../events.js";
import { createEndsTeller, type EndsTellerOptions } from "./ends.js";
import { createEventFeed } from "./event-feed.js";
import { createEventList, type EventListOptions } from "./event-list.js";

export interface MongoEventStore extends EventStore {
  /** Ends all who follow. */
  close(): Promise<void>;
}

export interface EventStoreOptions extends EventListOptions, EndsTellerOptions {
  readonly db: Db;
}

export function createEventStore(options: EventStoreOptions): MongoEventStore {
  const { runTransaction, db, time, events } = options;
  const feed = createEventFeed(db, time);

  return {
    async add(added) {
      if (added.length < 2) {
        return events.insert(added);
      }
      await runTransaction(async (session, commit) => {
        await events.insert(added, session);
        await commit();
      });
    },

    list: createEventList(options),
    follow: feed.follow,
    addForEnds: createEndsTeller(options),
    close: feed.close,
  };
}
