import {
  type ChangeLogOptions,
  type Entry,
  idsOf,
  newLeader,
  noBatch,
  type State,
  type Writer,
} from "./change-log-state.js";
import type { Model, Step } from "./checker.js";
import { logLeader } from "./log-leader.js";

/**
 * How a change of a record in MongoDB reaches the log of events: each once, in the order of its record, in every list
 * that starts after the acknowledgement.
 *
 * A change (no process waits for another one):
 * 1. Read the record, with `last`: entries `{id, at, event, reply?}`, oldest first.
 * 2. Keep the entries of `last` that are not known to be in the log. Known is an entry whose `at` is older, by the write
 *    deadline and the differences of the members' clocks, than the published position, or whose id a majority read of the
 *    log has found. An outdated position only keeps more. If too much would be kept, refuse the change, unless it revokes.
 * 3. Write record and `last: [...kept, new]` in one update, on condition of the version that was read and of the deadline.
 *    A majority acknowledges it, then the client gets its response. `$set` the whole array: with a pipeline the change
 *    stream would report a difference. What has no event (touch, fence, last use) leaves `last` alone. Whatever replaces a
 *    record keeps `kept` too, and a delete leaves a tombstone with its `last`.
 *
 * The leader (a lease avoids duplicate work, and nothing depends on it). Every write of the position document is on
 * condition of the version that the leader knows. If that fails, it is no longer the leader and forgets what it has read.
 * 4. Take the lease, with the position: `{version, token, until, entries, next, complete, scan?}`.
 * 5. Add the recorded entries: replies, then events, by id and with their recorded positions. Events that exist stay as
 *    they are. Wait for a majority.
 * 6. Publish: no entries, and `complete: until`.
 * 7. Read the stream from the token: all entries of each `last`, in order.
 * 8. Record them with consecutive positions, the new token and its time as `until`. Wait for a majority, then 5.
 *    A leader that was paused can thus only repeat what was recorded.
 *
 * If the stream cannot be resumed:
 * 9. Record as token and `until` the operation time of now, and a scan from the start. `complete` stays.
 * 10. Read the records that changed since `complete`, with the margin of step 2. Record and add what their `last` contains,
 *    as in 5 and 8, with the progress of the scan. A new leader continues it.
 * 11. After the scan publish, then go on with the stream of step 9, which repeats some of it.
 *
 * Readers and removal:
 * 12. A list waits until `complete` has reached an operation time that was taken after its request arrived, then reads up
 *    to the published position. Watchers never read beyond it.
 * 13. A tombstone or an expired record is removed only if all of its `last` is known to be in the log: no TTL index.
 *
 * Failovers, and why steps wait for a majority, are in failover.ts, replies in idempotency.ts.
 */
export function changeLog(options: ChangeLogOptions): Model<State> {
  const { changes, leaders = 1, lists = 0, crashes = 0, losses = 0, bug } = options;
  const recordCount = Math.max(...changes.map(({ record }) => record)) + 1;
  const lead = logLeader(options, recordCount);

  const initial: State = {
    records: Array.from({ length: recordCount }, () => ({ version: 0, last: [], is: "stored" })),
    oplog: [],
    overwritten: 0,
    position: { ...noBatch, complete: 0, next: 1 },
    log: [],
    published: 0,
    writers: changes.map(() => ({ is: "reading", version: -1, last: [] })),
    leaders: Array.from({ length: leaders }, newLeader),
    lists: Array.from({ length: lists }, () => ({ is: "new", time: 0, expected: [] })),
    applied: [],
    acknowledged: [],
    crashes,
    losses,
    problem: "",
  };

  function write(state: State, step: Step<State>, index: number): void {
    const { record, isDelete = false } = changes[index] as ChangeLogOptions["changes"][number];
    const writer = state.writers[index] as Writer;
    const who = `change ${index} of record ${record}`;
    const { position } = state;
    if (writer.is === "reading") {
      const stored = state.records[record] as State["records"][number];
      const isFarBehind = position.complete < state.oplog.length - 1;
      if (stored.is !== "stored") {
        step(`${who}: reads, deleted`, (copy) => {
          (copy.writers[index] as Writer).is = "done";
        });
      } else if (
        bug === "refuses changes while the log is far behind, but carries nothing" &&
        isFarBehind
      ) {
        return;
      } else {
        // It may know an older position, which only makes it carry more, and it may look entries up in the log.
        const unknown = stored.last.filter(({ time }) => time > position.complete);
        const isLogged = ({ id }: Entry) => state.log.some((logged) => logged.id === id);
        const carried: Entry[][] = [
          unknown,
          stored.last,
          unknown.filter((entry) => !isLogged(entry)),
        ];
        if (
          bug === "forgets the last change" ||
          bug === "refuses changes while the log is far behind, but carries nothing"
        ) {
          carried.splice(0, 3, []);
        } else if (bug === "forgets a young change without knowing the position") {
          carried.push([]);
        }
        const different = carried.filter(
          (last, at) => carried.findIndex((other) => other.length === last.length) === at,
        );
        for (const last of different) {
          step(`${who}: reads version ${stored.version}, carries [${idsOf(last)}]`, (copy) => {
            copy.writers[index] = { is: "writing", version: stored.version, last };
          });
        }
      }
    }
    if (writer.is === "writing") {
      step(`${who}: conditional write`, (copy) => {
        const stored = copy.records[record] as State["records"][number];
        const copied = copy.writers[index] as Writer;
        if (stored.version !== copied.version || stored.is !== "stored") {
          copy.writers[index] = { is: "reading", version: -1, last: [] };
          return;
        }
        const id = `${index}`;
        stored.version++;
        stored.last = [...copied.last, { id, time: copy.oplog.length + 1 }];
        stored.is = isDelete ? "deleted" : "stored";
        copy.oplog.push({ record, last: stored.last });
        copy.applied.push(id);
        copy.writers[index] = { is: "written", version: -1, last: [] };
      });
    }
    if (writer.is === "written") {
      step(`${who}: acknowledged`, (copy) => {
        copy.acknowledged.push(`${index}`);
        copy.acknowledged.sort();
        (copy.writers[index] as Writer).is = "done";
      });
    }
  }

  function readList(state: State, step: Step<State>, index: number): void {
    const list = state.lists[index] as State["lists"][number];
    if (list.is === "new") {
      step(`list ${index}: starts at ${state.oplog.length}`, (copy) => {
        const isImpatient = bug === "lists do not wait";
        copy.lists[index] = {
          is: isImpatient ? "reading" : "waiting",
          time: copy.oplog.length,
          expected: [...copy.acknowledged],
        };
      });
    }
    if (list.is === "waiting" && state.position.complete >= list.time) {
      step(`list ${index}: the log is complete up to ${list.time}`, (copy) => {
        (copy.lists[index] as State["lists"][number]).is = "reading";
      });
    }
    if (list.is === "reading") {
      step(`list ${index}: reads`, (copy) => {
        const missing = list.expected.filter((id) => !copy.log.some((logged) => logged.id === id));
        if (missing.length > 0) {
          copy.problem = `list without ${missing}`;
        }
        copy.lists[index] = { is: "done", time: 0, expected: [] };
      });
    }
  }

  return {
    initial,
    next(state, step) {
      for (const index of state.writers.keys()) {
        write(state, step, index);
      }
      for (const index of state.leaders.keys()) {
        lead(state, step, index);
      }
      for (const index of state.lists.keys()) {
        readList(state, step, index);
      }
      if (state.losses > 0 && state.overwritten < state.oplog.length) {
        step("the oplog is overwritten", (copy) => {
          copy.losses--;
          copy.overwritten = copy.oplog.length;
        });
      }
      state.records.forEach((stored, index) => {
        const isInLog = stored.last.every(({ time }) => time <= state.position.complete);
        if (stored.is === "deleted" && (isInLog || bug === "removes tombstones by age")) {
          step(`the tombstone of record ${index} is removed`, (copy) => {
            copy.records[index] = { version: stored.version + 1, last: [], is: "purged" };
          });
        }
      });
    },
    invariants: {
      noPhantomEvent: ({ log, applied }) =>
        log.every(({ id }) => applied.includes(id)) || `log ${idsOf(log)}, applied ${applied}`,
      everyEventOnce: ({ log }) => new Set(idsOf(log)).size === log.length || `log ${idsOf(log)}`,
      onePositionEach: ({ log }) =>
        new Set(log.map(({ position }) => position)).size === log.length || JSON.stringify(log),
      orderOfTheRecord: ({ log, applied }) =>
        initial.records.every((_, record) => {
          const isOfRecord = (id: string) => changes[Number(id)]?.record === record;
          const logged = idsOf(log).filter(isOfRecord);
          return logged.every(
            (id, index) =>
              index === 0 || applied.indexOf(logged[index - 1] as string) < applied.indexOf(id),
          );
        }) || `log ${JSON.stringify(log)}, applied ${applied}`,
      listsAndReadersMissNothing: ({ problem }) => problem === "" || problem,
    },
    reachable: {
      everyChangeIsLogged: { to: ({ applied, log }) => applied.length === log.length },
      everyListEnds: { to: ({ lists: all }) => all.every(({ is }) => is === "done") },
    },
  };
}
