import type { AnswerStore, NewAnswer } from "../port/audit.js";
import type { Clock } from "../port/store.js";
import type { Environment } from "./environment.js";
import { after, momentBytes, nothing } from "./keys.js";

/** A row of `answers` is the moment at which it ends, then what it says. */
const momentSize = 8;

/** The answers that can be given again. An id is the hexadecimal digits of its bytes. */
export interface Answers extends AnswerStore {
  /** Whether an answer is kept, inside `write`. */
  has(id: string): boolean;

  /** Keeps an answer, inside `write`, in place of one that has ended. */
  put(id: string, answer: NewAnswer): void;

  /** Whether there is something to prune. */
  needsPruning(): boolean;

  /** Removes those that have ended. */
  prune(limit: number): void;
}

export function createAnswers({ read, tables }: Environment, clock: Clock): Answers {
  const { responses, responseExpirations } = tables;

  function findKept(id: string): Buffer | undefined {
    const row = responses.get(Buffer.from(id, "hex"));
    return row && clock() < row.readDoubleBE(0) ? row : undefined;
  }

  function ended(limit: number): Buffer[] {
    return [...responseExpirations.getKeys({ end: after(momentBytes(clock())), limit })];
  }

  return {
    async find(id) {
      return read(() => findKept(id)?.subarray(momentSize));
    },

    has: (id) => findKept(id) !== undefined,

    put(id, { sealed, ttl }) {
      const key = Buffer.from(id, "hex");
      const replaced = responses.get(key);
      if (replaced) {
        responseExpirations.remove(answerEndKey(replaced, key));
      }
      const row = Buffer.concat([momentBytes(clock() + ttl), sealed]);
      responses.put(key, row);
      responseExpirations.put(answerEndKey(row, key), nothing);
    },

    needsPruning: () => ended(1).length > 0,

    prune(limit) {
      for (const key of ended(limit)) {
        responses.remove(key.subarray(momentSize));
        responseExpirations.remove(key);
      }
    },
  };
}

function answerEndKey(row: Buffer, key: Buffer): Buffer {
  return Buffer.concat([row.subarray(0, momentSize), key]);
}
