import type { Door, Tally } from "./tally.js";

/** What every door said of keys, asked as soon as their end was acknowledged. */
export interface EndedKeys {
  /** Asks all doors at once, and waits for none. */
  ask(kind: string, key: string, acknowledgedAt: number): void;
  /** Resolves when all that was asked is answered. */
  settled(): Promise<void>;
  /** How many keys ended in which way. */
  readonly ends: Readonly<Record<string, number>>;
  /** How often each answer was given; `done` is that of a door that took the key. */
  readonly answers: Readonly<Record<string, number>>;
  /** The shortest time between an acknowledgement and the question, in milliseconds. */
  shortest(): number;
}

export function createEndedKeys(tally: Tally, doors: readonly Door[]): EndedKeys {
  const ends: Record<string, number> = {};
  const answers: Record<string, number> = {};
  const asking = new Set<Promise<void>>();
  let shortest = Number.POSITIVE_INFINITY;

  async function askOne(door: Door, key: string, acknowledgedAt: number): Promise<void> {
    const { end, begunAt } = await tally.call(door, "ended key", (api) => api.whoAmI(key));
    answers[end] = (answers[end] ?? 0) + 1;
    shortest = Math.min(shortest, begunAt - acknowledgedAt);
  }

  return {
    ends,
    answers,
    shortest: () => shortest,

    ask(kind, key, acknowledgedAt) {
      ends[kind] = (ends[kind] ?? 0) + 1;
      for (const door of doors) {
        const asked = askOne(door, key, acknowledgedAt).finally(() => asking.delete(asked));
        asking.add(asked);
      }
    },

    async settled() {
      await Promise.all(asking);
    },
  };
}
