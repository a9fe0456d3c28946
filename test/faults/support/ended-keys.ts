import type { Door, Tally } from "./tally.js";

/** The responses of every endpoint for keys, right after their revocation was acknowledged. */
export interface EndedKeys {
  /** Queries all endpoints at once without waiting. */
  ask(kind: string, key: string, acknowledgedAt: number): void;
  /** Resolves after all responses. */
  settled(): Promise<void>;
  /** The number of revoked keys by method. */
  readonly ends: Readonly<Record<string, number>>;
  /** The number of responses by outcome; `done` means that the key was accepted. */
  readonly answers: Readonly<Record<string, number>>;
  /** The shortest time between an acknowledgement and the query, in milliseconds. */
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
