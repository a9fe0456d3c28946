import type { Model } from "./checker.js";

/** The records, the position document and the log, each on a shard with failovers of its own. */
type Shard = "record" | "position" | "log";

interface State {
  /** Writes of each shard in order. A failover may undo those that the majority lacks. */
  writes: Record<Shard, Write[]>;
  majority: Record<Shard, number>;
  failovers: number;
  /** Each of its own record. */
  changes: { is: "new" | "waiting" | "acknowledged" | "unknown"; at: number }[];
  leader: Leader;
}

interface Write {
  readonly name: string;
  /** Of the position document: the recorded entries in the order of their positions, and how many are published. */
  readonly recorded: readonly string[];
  readonly published: number;
}

interface Leader {
  is: "starting" | "recording" | "recorded" | "adding" | "added" | "publishing";
  recorded: readonly string[];
  published: number;
  at: number;
}

export type FailoverBug =
  | "acknowledges before a majority has the change"
  | "reads changes that a majority lacks"
  | "adds entries before a majority has the record of the batch"
  | "publishes before a majority has the entries"
  | "a new leader reads a position that a majority lacks";

export function failover({
  failovers = 2,
  changes = 2,
  bug,
}: {
  failovers?: number;
  changes?: number;
  bug?: FailoverBug;
} = {}): Model<State> {
  const shards: readonly Shard[] = ["record", "position", "log"];
  const newLeader = (): Leader => ({ is: "starting", recorded: [], published: 0, at: -1 });
  const names = (writes: readonly Write[]) => writes.map(({ name }) => name);
  const committed = (state: State, shard: Shard) =>
    state.writes[shard].slice(0, state.majority[shard]);
  const write = (
    state: State,
    shard: Shard,
    name: string,
    { recorded, published }: Omit<Write, "name"> = { recorded: [], published: 0 },
  ) => state.writes[shard].push({ name, recorded, published });
  const lastOf = (writes: readonly Write[]) => writes.at(-1) ?? { recorded: [], published: 0 };

  return {
    initial: {
      writes: { record: [], position: [], log: [] },
      majority: { record: 0, position: 0, log: 0 },
      failovers,
      changes: Array.from({ length: changes }, () => ({ is: "new", at: -1 })),
      leader: newLeader(),
    },
    next(state, step) {
      for (const shard of shards) {
        const { length } = state.writes[shard];
        const known = state.majority[shard];
        if (known < length) {
          step(`a majority has write ${known} of ${shard}`, (copy) => {
            copy.majority[shard]++;
          });
        }
        for (let kept = known; kept < length && state.failovers > 0; kept++) {
          step(`FAILOVER of ${shard}: undoes ${names(state.writes[shard].slice(kept))}`, (copy) => {
            copy.failovers--;
            copy.writes[shard].splice(kept);
            for (const change of copy.changes) {
              if (shard === "record" && change.is === "waiting" && change.at > kept) {
                change.is = "unknown";
              }
            }
            const { leader } = copy;
            const waitsFor = { recorded: "position", added: "log" }[leader.is as string];
            if (waitsFor === shard && leader.at > kept) {
              copy.leader = newLeader();
            }
          });
        }
      }

      state.changes.forEach((change, index) => {
        if (change.is === "new") {
          step(`change ${index}: writes the record`, (copy) => {
            write(copy, "record", `${index}`);
            copy.changes[index] = { is: "waiting", at: copy.writes.record.length };
          });
        }
        if (
          change.is === "waiting" &&
          (state.majority.record >= change.at ||
            bug === "acknowledges before a majority has the change")
        ) {
          step(`change ${index}: acknowledged`, (copy) => {
            copy.changes[index] = { is: "acknowledged", at: -1 };
          });
        }
      });

      const { leader } = state;
      const at = (label: string, act: (copy: State, mine: Leader) => void) =>
        step(`leader: ${label}`, (copy) => act(copy, copy.leader));
      if (leader.is !== "starting" && state.failovers > 0) {
        at("another one takes over", (copy) => {
          copy.failovers--;
          copy.leader = newLeader();
        });
      }
      switch (leader.is) {
        case "starting":
          at("reads the position", (copy, mine) => {
            const isLocal = bug === "a new leader reads a position that a majority lacks";
            const { recorded, published } = lastOf(
              isLocal ? copy.writes.position : committed(copy, "position"),
            );
            Object.assign(mine, {
              is: recorded.length > published ? "adding" : "recording",
              recorded,
              published,
            });
          });
          break;
        case "recording": {
          const isLocal = bug === "reads changes that a majority lacks";
          const stream = names(isLocal ? state.writes.record : committed(state, "record"));
          // Changes of different records: a scan may find them in another order than the stream.
          for (const found of stream.filter((name) => !leader.recorded.includes(name))) {
            at(`records ${found}`, (copy, mine) => {
              // The server compares with its latest write, which a majority may lack.
              if (
                JSON.stringify(lastOf(copy.writes.position).recorded) !==
                JSON.stringify(mine.recorded)
              ) {
                copy.leader = newLeader();
                return;
              }
              mine.recorded = [...mine.recorded, found];
              write(copy, "position", `recorded ${found}`, mine);
              mine.is =
                bug === "adds entries before a majority has the record of the batch"
                  ? "adding"
                  : "recorded";
              mine.at = copy.writes.position.length;
            });
          }
          break;
        }
        case "recorded":
          if (state.majority.position >= leader.at) {
            at("a majority has the record of the batch", (_, mine) => {
              mine.is = "adding";
            });
          }
          break;
        case "adding":
          at(`adds ${leader.recorded.at(-1)}`, (copy, mine) => {
            const name = `${leader.recorded.at(-1)} at ${leader.recorded.length}`;
            const isThere = copy.writes.log.some((added) =>
              added.name.startsWith(`${leader.recorded.at(-1)} `),
            );
            if (!isThere) {
              write(copy, "log", name);
            }
            // The server waits for a majority even if the entry was there.
            mine.is =
              bug === "publishes before a majority has the entries" ? "publishing" : "added";
            mine.at = copy.writes.log.length;
          });
          break;
        case "added":
          if (state.majority.log >= leader.at) {
            at("a majority has the entries", (_, mine) => {
              mine.is = "publishing";
            });
          }
          break;
        case "publishing":
          at("publishes", (copy, mine) => {
            mine.published = mine.recorded.length;
            if (
              JSON.stringify(lastOf(copy.writes.position).recorded) !==
              JSON.stringify(mine.recorded)
            ) {
              copy.leader = newLeader();
              return;
            }
            write(copy, "position", `published ${mine.published}`, mine);
            mine.is = "recording";
          });
      }
    },
    invariants: {
      acknowledgedChangesSurvive: ({ changes: all, writes }) =>
        all.every(
          ({ is }, index) => is !== "acknowledged" || names(writes.record).includes(`${index}`),
        ) || `the record has ${names(writes.record)}`,
      noPhantomEvent: (state) =>
        names(state.writes.log).every((name) =>
          names(state.writes.record).includes(name.split(" ")[0] as string),
        ) || `the log has ${names(state.writes.log)}, the record ${names(state.writes.record)}`,
      publishedEventsAreInTheLog: (state) => {
        const { recorded, published } = lastOf(committed(state, "position"));
        const log = names(state.writes.log);
        return (
          recorded
            .slice(0, published)
            .every((name, index) => log.includes(`${name} at ${index + 1}`)) ||
          `${recorded} published, the log has ${log}`
        );
      },
      onePositionEach: ({ writes: { log } }) => {
        const positions = names(log).map((name) => name.split(" at ")[1]);
        return new Set(positions).size === log.length || `the log has ${names(log)}`;
      },
    },
    reachable: {
      everyChangeIsLogged: {
        to: ({ writes }) =>
          names(writes.record).every((name) =>
            names(writes.log).some((added) => added.startsWith(`${name} `)),
          ),
      },
    },
  };
}
