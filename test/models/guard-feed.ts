import type { Model } from "./checker.js";

/**
 * What guards learn, and `complete_until`: up to that time of the database they know every change and every expiry. The
 * feed follows the change stream of the records. Expiry writes nothing, so the feed also scans for expired records.
 */
interface State {
  clock: number;
  ticks: number;
  /** A failover to a member whose clock is one behind. */
  setbacks: number;
  records: { expiry: number; isRevoked: boolean }[];
  /** The record of each write. */
  oplog: number[];
  overwritten: number;
  losses: number;
  changes: boolean[];
  feed: {
    is: "idle" | "scanning" | "timing" | "waiting";
    read: number;
    scannedUntil: number;
    time: number;
    writes: number;
    found: number[];
    /** What has happened when the scan began, as the guard must know it when the scan is published. */
    expected: number[];
    scans: number;
  };
  guard: { known: number[]; isComplete: boolean; missed: number[] };
}

export type GuardFeedBug =
  | "does not wait for the stream"
  | "takes the time after the scan"
  | "the scan takes the time again"
  | "scans only what has expired since the last scan"
  | "restarts the stream at its end without a reset";

export interface GuardFeedOptions {
  /** Expiry of each record, in ticks; 9 for never. */
  readonly expiries: readonly number[];
  /** Revokes the record, or lets it expire now. */
  readonly changes: readonly {
    readonly record: number;
    readonly kind: "revoke" | "expire now" | "expire at 2";
  }[];
  readonly scans?: number;
  readonly setbacks?: number;
  readonly losses?: number;
  readonly bug?: GuardFeedBug;
}

export function guardFeed({
  expiries,
  changes,
  scans = 2,
  setbacks = 0,
  losses = 0,
  bug,
}: GuardFeedOptions): Model<State> {
  const isReversed = bug === "takes the time after the scan";
  const isOver = ({ clock }: State, { expiry, isRevoked }: State["records"][number]) =>
    isRevoked || expiry <= clock;
  const over = (state: State) =>
    state.records.flatMap((record, index) => (isOver(state, record) ? index : []));
  const learn = (state: State, records: readonly number[]) => {
    state.guard.known = [...new Set([...state.guard.known, ...records])].sort();
  };
  const takeTime = (state: State) => {
    state.feed.time = state.clock;
    state.feed.expected = over(state);
  };
  const scan = (state: State) => {
    const { feed } = state;
    // Clocks of members differ: a record may expire at a time that was scanned before.
    const from =
      bug === "scans only what has expired since the last scan"
        ? feed.scannedUntil
        : feed.scannedUntil - 2;
    const until = isReversed || bug === "the scan takes the time again" ? state.clock : feed.time;
    feed.found = state.records.flatMap(({ expiry }, index) =>
      expiry > from && expiry <= until ? index : [],
    );
    feed.writes = state.oplog.length;
  };
  return {
    initial: {
      clock: 0,
      ticks: 3,
      setbacks,
      records: expiries.map((expiry) => ({ expiry, isRevoked: false })),
      oplog: [],
      overwritten: 0,
      losses,
      changes: changes.map(() => false),
      feed: {
        is: "idle",
        read: 0,
        scannedUntil: -1,
        time: -1,
        writes: 0,
        found: [],
        expected: [],
        scans,
      },
      guard: { known: [], isComplete: false, missed: [] },
    },
    next(state, step) {
      if (state.ticks > 0) {
        step("time passes", (copy) => {
          copy.ticks--;
          copy.clock++;
        });
      }
      if (state.setbacks > 0 && state.clock > 0) {
        step("FAILOVER to a member whose clock is behind", (copy) => {
          copy.setbacks--;
          copy.clock--;
        });
      }
      changes.forEach(({ record, kind }, index) => {
        // What has expired is not changed any more.
        if (
          !state.changes[index] &&
          !isOver(state, state.records[record] as State["records"][number])
        ) {
          step(`change ${index}: ${kind}, record ${record}`, (copy) => {
            const changed = copy.records[record] as State["records"][number];
            changed.isRevoked ||= kind === "revoke";
            changed.expiry =
              kind === "expire now" ? copy.clock : kind === "expire at 2" ? 2 : changed.expiry;
            copy.changes[index] = true;
            copy.oplog.push(record);
          });
        }
      });
      if (state.losses > 0 && state.feed.read < state.oplog.length) {
        step("the oplog is overwritten", (copy) => {
          copy.losses--;
          copy.overwritten = copy.oplog.length;
        });
      }

      const { feed } = state;
      if (feed.read < state.overwritten) {
        step("feed: starts the stream again", (copy) => {
          copy.feed = {
            ...copy.feed,
            is: "idle",
            read: copy.oplog.length,
            found: [],
            expected: [],
          };
          if (bug !== "restarts the stream at its end without a reset") {
            // The guard forgets what it has cached, and reads what it needs.
            copy.guard = {
              known: copy.records.map((_, index) => index),
              isComplete: false,
              missed: [],
            };
          }
        });
        return;
      }
      if (feed.read < state.oplog.length) {
        step("feed: reads the stream", (copy) => {
          const record = copy.oplog[copy.feed.read++] as number;
          // The guard learns the new expiry with the change and judges it itself, unless it is in the future.
          if (isOver(copy, copy.records[record] as State["records"][number])) {
            learn(copy, [record]);
          }
        });
      }
      if (feed.is === "idle" && feed.scans > 0) {
        step(isReversed ? "feed: scans" : "feed: takes the time", (copy) => {
          copy.feed.scans--;
          (isReversed ? scan : takeTime)(copy);
          copy.feed.is = "scanning";
        });
      }
      if (feed.is === "scanning") {
        step(isReversed ? "feed: takes the time" : "feed: scans", (copy) => {
          (isReversed ? takeTime : scan)(copy);
          copy.feed.is = "waiting";
        });
      }
      if (
        feed.is === "waiting" &&
        (feed.read >= feed.writes || bug === "does not wait for the stream")
      ) {
        step(`feed: publishes complete_until ${feed.time}`, (copy) => {
          learn(copy, feed.found);
          copy.guard.isComplete = true;
          copy.guard.missed = feed.expected.filter((record) => !copy.guard.known.includes(record));
          copy.feed = {
            ...copy.feed,
            is: "idle",
            scannedUntil: feed.time,
            found: [],
            expected: [],
          };
        });
      }
    },
    invariants: {
      guardMissesNothing: ({ guard }) =>
        guard.missed.length === 0 || `complete without records ${guard.missed}`,
    },
    reachable: {
      everyWriteIsRead: { to: ({ feed, oplog }) => feed.read === oplog.length },
    },
  };
}
