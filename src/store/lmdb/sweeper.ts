import { idFromBytes } from "../../ids.js";
import type { ApplicationRecord, Clock } from "../store.js";
import type { ApplicationIndex } from "./application-index.js";
import type { Environment, Tables } from "./environment.js";
import { after, idAtEnd, momentBytes } from "./keys.js";
import type { Records } from "./records.js";

/** Rows removed in one transaction: few enough that requests need not wait long behind it. */
const batchSize = 200;

/**
 * Removes what has expired, every so often. It only saves space, since expiry
 * is judged on read; so a sweep that fails is left to the next one. Several
 * processes may sweep: each removes what it finds within its transaction.
 */
export function startSweeper(
  { read, write, tables }: Environment,
  applications: Records<ApplicationRecord>,
  index: ApplicationIndex,
  clock: Clock,
  interval: number,
) {
  let stopped = false;
  let sweeping: Promise<void> = Promise.resolve();

  function due(table: Tables["sessionEnds"]): Buffer[] {
    return [...table.getKeys({ end: after(momentBytes(clock())), limit: batchSize })];
  }

  function sweepSessions(): number {
    const keys = due(tables.sessionEnds);
    for (const key of keys) {
      tables.sessionEnds.remove(key);
      tables.sessions.remove(idFromBytes(idAtEnd(key)));
    }
    return keys.length;
  }

  function sweepApplications(): number {
    const keys = due(tables.applicationEnds);
    for (const key of keys) {
      const id = idFromBytes(idAtEnd(key));
      const record = applications.get(id);
      if (record) {
        index.remove(record);
      }
      applications.remove(id);
      tables.applicationEnds.remove(key);
    }
    return keys.length;
  }

  async function sweep(): Promise<void> {
    while (!stopped && read(() => due(tables.sessionEnds).length > 0)) {
      await write(sweepSessions);
    }
    while (!stopped && read(() => due(tables.applicationEnds).length > 0)) {
      await write(sweepApplications);
    }
  }

  const timer = setInterval(() => {
    sweeping = sweeping.then(sweep).catch(() => {});
  }, interval);
  timer.unref();

  return {
    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
