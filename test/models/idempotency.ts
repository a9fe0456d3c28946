import type { Model } from "./checker.js";

/**
 * Attempts that share one idempotency key. A reply travels in `last` of the record until the leader has stored it.
 * The name of a reply is the number of the attempt that made the change, and -1 means none.
 */
interface Shared {
  /** The entries that the record carries: an attempt, or -1 for a change without a key. Entries up to `stored` are in the log. */
  record: {
    is: "absent" | "stored" | "tombstone";
    last: { readonly by: number; readonly time: number }[];
  };
  /** What the change stream has delivered and the leader has yet to store. */
  stream: { readonly by: number; readonly time: number }[];
  time: number;
  complete: number;
  reply: number;
  attempts: Attempt[];
  others: Other[];
  effects: number;
  replies: number[];
  crashes: number;
  refused: boolean;
}

interface Attempt {
  is: "new" | "reading" | "looking up" | "writing" | "written" | "done";
  /** The record is as it was read. */
  isCurrent: boolean;
  /** Its deadline has passed. */
  isLate: boolean;
  seen: "absent" | "stored" | "tombstone";
  last: { readonly by: number; readonly time: number }[];
  made: boolean;
}

type Other = Pick<Attempt, "isCurrent" | "last"> & { is: "reading" | "writing" | "done" };

export type IdempotencyBug =
  | "looks up the response before it reads the record"
  | "forgets the reply of the change before"
  | "publishes the position before it stores the replies"
  | "every attempt replies with its own key"
  | "inserts without a deadline"
  | "removes tombstones early"
  | "the reservation ends under an attempt"
  | "every attempt creates a record of its own";

interface Options {
  readonly kind: "create" | "change" | "delete";
  readonly attempts?: number;
  /** Changes of the record without the key. For a create, the first one deletes what was created. */
  readonly others?: number;
  readonly bug?: IdempotencyBug;
}

export function idempotency({ kind, attempts = 2, others = 1, bug }: Options): Model<Shared> {
  const isCreate = kind === "create";
  const isLookupFirst = bug === "looks up the response before it reads the record";
  const first = isCreate ? "new" : isLookupFirst ? "looking up" : "reading";
  const newAttempt = (is: Attempt["is"]): Attempt => ({
    is,
    isCurrent: false,
    isLate: false,
    seen: "absent",
    last: [],
    made: false,
  });
  const newOther = (is: Other["is"]): Other => ({ is, isCurrent: false, last: [] });
  const isInFlight = ({ is }: Attempt) => is !== first && is !== "written" && is !== "done";

  function changed(state: Shared): void {
    for (const reader of [...state.attempts, ...state.others]) {
      reader.isCurrent = false;
    }
  }

  /** The entries that a change keeps: those that it does not know to be stored. */
  function kept({ record, complete }: Shared): Attempt["last"] {
    return bug === "forgets the reply of the change before"
      ? []
      : record.last.filter(({ time }) => time > complete);
  }

  function write(
    state: Shared,
    by: number,
    last: Attempt["last"],
    is: Shared["record"]["is"],
  ): void {
    const entry = { by, time: ++state.time };
    state.record = { is, last: [...last, entry] };
    state.stream.push(entry);
    changed(state);
  }

  function end(state: Shared, index: number, reply: number): void {
    if (reply >= 0 && !state.replies.includes(reply)) {
      state.replies.push(reply);
      state.replies.sort();
    }
    state.refused ||= reply < 0 && state.attempts.some(({ made }) => made);
    const { made } = state.attempts[index] as Attempt;
    state.attempts[index] = { ...newAttempt("done"), made };
  }

  function decide(state: Shared, mine: Attempt, index: number): void {
    if (!isCreate && mine.seen !== "stored") {
      end(state, index, -1);
    } else {
      mine.is = "writing";
    }
  }

  return {
    initial: {
      record: { is: isCreate ? "absent" : "stored", last: [] },
      stream: [],
      time: 0,
      complete: 0,
      reply: -1,
      attempts: Array.from({ length: attempts }, () => newAttempt(first)),
      others: Array.from({ length: others }, () => newOther("reading")),
      effects: 0,
      replies: [],
      crashes: 1,
      refused: false,
    },
    next(state, step) {
      const { record } = state;
      state.attempts.forEach((attempt, index) => {
        const at = (label: string, act: (copy: Shared, mine: Attempt) => unknown) =>
          step(`attempt ${index}: ${label}`, (copy) => act(copy, copy.attempts[index] as Attempt));
        const startOver = (mine: Attempt) =>
          Object.assign(mine, newAttempt(first), { made: mine.made });

        if (attempt.is !== first && attempt.is !== "done" && state.crashes > 0) {
          at("CRASH", (copy, mine) => {
            copy.crashes--;
            copy.attempts[index] = { ...newAttempt("done"), made: mine.made };
          });
        }
        switch (attempt.is) {
          case "new":
            at("reserves the id", (copy, mine) => {
              if (copy.reply >= 0) {
                return end(copy, index, copy.reply);
              }
              mine.is = "reading";
            });
            break;
          case "reading":
            at("reads the record", (copy, mine) => {
              const found = copy.record.last.find(({ by }) => by >= 0);
              if (found) {
                return end(copy, index, found.by);
              }
              const seen = copy.record.is;
              Object.assign(mine, { is: "looking up", isCurrent: true, seen, last: kept(copy) });
              if (isLookupFirst) {
                decide(copy, mine, index);
              }
            });
            break;
          case "looking up":
            at("looks up the response", (copy, mine) => {
              if (copy.reply >= 0) {
                end(copy, index, copy.reply);
              } else if (isLookupFirst) {
                mine.is = "reading";
              } else {
                decide(copy, mine, index);
              }
            });
            break;
          case "writing":
            at(
              isCreate && attempt.seen === "absent" ? "inserts the record" : "conditional write",
              (copy, mine) => {
                const isLate = mine.isLate && bug !== "inserts without a deadline";
                const isOwn = bug === "every attempt creates a record of its own";
                // An insert is stopped by a record with its id, an update by the version.
                const isStopped =
                  mine.seen === "absent" ? copy.record.is !== "absent" && !isOwn : !mine.isCurrent;
                if (isStopped) {
                  return bug === "every attempt replies with its own key"
                    ? end(copy, index, index)
                    : startOver(mine);
                }
                if (isLate) {
                  if (mine.seen === "absent") {
                    copy.record = { is: "tombstone", last: [] };
                    changed(copy);
                  }
                  return startOver(mine);
                }
                mine.made = true;
                copy.effects++;
                write(copy, index, mine.last, kind === "delete" ? "tombstone" : "stored");
                mine.is = "written";
              },
            );
            break;
          case "written":
            at("acknowledged", (copy) => end(copy, index, index));
        }
      });

      state.others.forEach((other, index) => {
        const isDelete = isCreate && index === 0;
        if (other.is === "reading" && record.is === "stored") {
          step(`other change ${index}: reads the record`, (copy) => {
            copy.others[index] = { is: "writing", isCurrent: true, last: kept(copy) };
          });
        }
        if (other.is === "writing") {
          step(`other change ${index}: ${isDelete ? "deletes" : "changes"} the record`, (copy) => {
            copy.others[index] = newOther("reading");
            if (other.isCurrent) {
              write(copy, -1, other.last, isDelete ? "tombstone" : "stored");
              copy.others[index] = newOther("done");
            }
          });
        }
      });

      const [next] = state.stream;
      const isEarly = bug === "publishes the position before it stores the replies";
      if (next && (!isEarly || state.complete >= next.time)) {
        step(`leader: stores the entry of ${next.by}`, (copy) => {
          copy.stream.shift();
          copy.reply = copy.reply < 0 ? next.by : copy.reply;
        });
      }
      const stored = (isEarly ? next?.time : next ? next.time - 1 : state.time) ?? state.complete;
      if (stored > state.complete) {
        step(`leader: publishes ${stored}`, (copy) => {
          copy.complete = stored;
        });
      }

      const areAllLate = state.attempts.every((attempt) => !isInFlight(attempt) || attempt.isLate);
      if (!areAllLate) {
        step("a second passes", (copy) => {
          for (const attempt of copy.attempts) {
            attempt.isLate = isInFlight(attempt);
          }
        });
      }
      const isStored = record.last.every(({ time }) => time <= state.complete);
      if (
        isCreate &&
        record.is === "tombstone" &&
        isStored &&
        (areAllLate || bug === "removes tombstones early" || bug === "inserts without a deadline")
      ) {
        step("the tombstone is removed", (copy) => {
          copy.record = { is: "absent", last: [] };
          changed(copy);
        });
      }
      // What was created under the first id is not found, and nothing stops an insert of it.
      if (
        isCreate &&
        state.effects === 0 &&
        (areAllLate || bug === "the reservation ends under an attempt")
      ) {
        step("the reservation ends, the next attempt creates a record with another id", (copy) => {
          copy.effects++;
          copy.reply = attempts;
          copy.replies.push(attempts);
        });
      }
    },
    invariants: {
      oneEffect: ({ effects }) => effects < 2 || `${effects} changes with one key`,
      sameReply: ({ replies }) => replies.length < 2 || `replies ${replies}`,
      repliesToOwnChange: ({ replies, attempts: all }) =>
        replies.every((reply) => all[reply]?.made ?? true) || `replies ${replies}`,
      notRefusedForOwnChange: ({ refused }) =>
        !refused || "a retry was refused because of its earlier attempt",
    },
    reachable: {
      everyAttemptEnds: { to: ({ attempts: all }) => all.every(({ is }) => is === "done") },
      replyIsStored: { from: ({ effects }) => effects > 0, to: ({ reply }) => reply >= 0 },
    },
  };
}
