import { type ChangeFeed, largestBatch } from "../changes.js";
import type { ChangeLog } from "./change-log.js";
import type { Environment } from "./environment.js";
import { createLogFeed } from "./log-feed.js";

export function createChangeFeed(environment: Environment, log: ChangeLog): ChangeFeed {
  const followLog = createLogFeed(environment, log, {
    largest: largestBatch,
    // Judged by age, so that it is the same whether they were pruned or not.
    continuesWith: (entry) => !log.isOld(entry),
    // Who missed some has to forget all, and gains nothing from those that are left.
    restart: log.last,
  });

  return {
    async *follow(options) {
      for await (const { entries, missed, position, completeUntil } of followLog(options)) {
        yield { changes: entries.map(({ change }) => change), missed, position, completeUntil };
      }
    },
  };
}
