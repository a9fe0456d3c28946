import {
  type Batch,
  type ChangeLogOptions,
  idsOf,
  type Leader,
  newLeader,
  noBatch,
  type State,
} from "./change-log-state.js";
import type { Step } from "./checker.js";

/** The steps of the leaders, one of which fills the log. Several may believe that they lead. */
export function logLeader(
  { bug, batchSize = 2 }: ChangeLogOptions,
  recordCount: number,
): (state: State, step: Step<State>, index: number) => void {
  const isUnrecorded = bug === "positions from the stream, no recorded batch";

  /** A write of the position document, on condition of the version that the leader knows. */
  function record(copy: State, leader: Leader, fields: Partial<State["position"]>): boolean {
    if (!leader.isCurrent && bug !== "records a batch whatever was recorded before") {
      Object.assign(leader, newLeader());
      return false;
    }
    Object.assign(copy.position, fields);
    supersedeOthers(copy, leader);
    return true;
  }

  function supersedeOthers(copy: State, leader: Leader): void {
    for (const other of copy.leaders) {
      other.isCurrent = other === leader;
    }
  }

  function publish(copy: State, complete: number): void {
    copy.position.complete = Math.max(copy.position.complete, complete);
    copy.published = Math.max(copy.published, ...copy.log.map(({ position }) => position));
  }

  function prepare(
    copy: State,
    leader: Leader,
    found: Batch["entries"],
    until: number,
    scanned: number,
  ): void {
    const entries = isUnrecorded
      ? found
      : found
          .filter(({ id }, index) => found.findIndex((other) => other.id === id) === index)
          .filter(({ id }) => !copy.log.some((logged) => logged.id === id))
          .map(({ id }, index) => ({ id, position: leader.next + index }));
    leader.batch = { until, entries, scanned };
    if (isUnrecorded) {
      startAdding(leader);
    } else {
      leader.is = entries.length === 0 ? "publishing" : "recording";
    }
  }

  function startAdding(leader: Leader): void {
    leader.left = leader.batch.entries.map((_, index) => index);
    leader.is = leader.left.length === 0 ? "publishing" : "adding";
  }

  return (state, step, index) => {
    const leader = state.leaders[index] as Leader;
    const at = (label: string, change: (copy: State, leader: Leader) => void) =>
      step(`leader ${index}: ${label}`, (copy) => change(copy, copy.leaders[index] as Leader));

    if (leader.is !== "idle" && state.crashes > 0) {
      at("CRASH", (copy) => {
        copy.crashes--;
        copy.leaders[index] = newLeader();
      });
    }
    switch (leader.is) {
      case "idle":
        at("takes the lease", (copy, mine) => {
          supersedeOthers(copy, mine);
          const { until, entries, scanned, next } = copy.position;
          const isFinished =
            bug === "new leader ignores the recorded batch" || entries.length === 0;
          Object.assign(mine, {
            is: isFinished ? "publishing" : "adding",
            batch: { until, entries, scanned },
            next,
            left: isFinished ? [] : entries.map((_, entry) => entry),
          });
        });
        break;
      case "adding":
        // A recorded batch may be added in any order.
        for (const entry of isUnrecorded ? leader.left.slice(0, 1) : leader.left) {
          const added = leader.batch.entries[entry] as Batch["entries"][number];
          at(`adds ${added.id} at ${added.position}`, (copy, mine) => {
            if (!copy.log.some(({ id }) => id === added.id)) {
              if (added.position <= copy.published) {
                copy.problem = `${added.id} was added at ${added.position}, readers are at ${copy.published}`;
              }
              copy.log.push(added);
              copy.log.sort(
                (one, other) => one.position - other.position || one.id.localeCompare(other.id),
              );
            }
            mine.left = mine.left.filter((other) => other !== entry);
            mine.is = mine.left.length === 0 ? "publishing" : "adding";
          });
        }
        break;
      case "publishing":
        at(`publishes ${leader.batch.until}`, (copy, mine) => {
          const { until, scanned } = mine.batch;
          const isScanning = scanned >= 0 && scanned < recordCount;
          if (!record(copy, mine, { ...noBatch, until, scanned: isScanning ? scanned : -1 })) {
            return;
          }
          if (!isScanning || bug === "publishes the position during a scan") {
            publish(copy, until);
          }
          mine.batch = { until, entries: [], scanned: isScanning ? scanned : -1 };
          mine.is = isScanning ? "scanning" : "reading";
        });
        break;
      case "reading": {
        const from = leader.batch.until;
        if (from < state.overwritten) {
          at("cannot resume the stream", (_, mine) => {
            mine.is = "lost";
          });
        } else if (from < state.oplog.length) {
          for (const size of new Set([1, Math.min(batchSize, state.oplog.length - from)])) {
            at(`reads ${size} of the stream`, (copy, mine) => {
              const writes = copy.oplog.slice(from, from + size);
              const found = writes.flatMap(({ last }, offset) =>
                last.map(({ id }, entry) => ({ id, position: (from + offset + 1) * 100 + entry })),
              );
              prepare(copy, mine, found, from + size, -1);
            });
          }
        }
        break;
      }
      case "lost":
        at("records where the stream starts again", (copy, mine) => {
          const until = copy.oplog.length;
          const scanned = bug === "restarts at the end of the oplog after a loss" ? -1 : 0;
          if (record(copy, mine, { until, scanned, entries: [] })) {
            mine.batch = { until, entries: [], scanned };
            mine.is = scanned < 0 ? "publishing" : "scanning";
          }
        });
        break;
      case "scanning":
        at(`reads record ${leader.batch.scanned}`, (copy, mine) => {
          const { until, scanned } = mine.batch;
          const { last } = copy.records[scanned] as State["records"][number];
          const found = last.map(({ id }) => ({
            id,
            position: until * 100 + 50 + copy.applied.indexOf(id),
          }));
          const isLast = scanned + 1 === recordCount;
          const start =
            isLast && bug === "starts the stream after the scan" ? copy.oplog.length : until;
          prepare(copy, mine, found, start, scanned + 1);
        });
        break;
      case "recording":
        at(`records the batch [${idsOf(leader.batch.entries)}]`, (copy, mine) => {
          const { next } = mine;
          const fields = { ...mine.batch, next: next + mine.batch.entries.length };
          if (record(copy, mine, fields)) {
            startAdding(mine);
            mine.next = fields.next;
            if (bug === "saves the position before the entries") {
              publish(copy, mine.batch.until);
            }
          }
        });
    }
  };
}
