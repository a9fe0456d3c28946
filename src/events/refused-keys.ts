import type { FindNamed } from "../identify.js";
import { parseKey } from "../keys.js";
import { nextTurn } from "../next-turn.js";
import type { Denial } from "./denial-counts.js";
import { actorOf } from "./trail.js";

/** What is known of a call whose key does not work. */
export type CallFacts = Required<Pick<Denial, "method" | "address" | "requestId">>;

type Tell = (denial: Denial, count: number) => void;

/** Holds keys that were refused until it is found out whom they name, which callers must not wait for. */
export interface RefusedKeys {
  /** Takes the same time whether or not a key names anybody. */
  add(key: string, facts: CallFacts): void;

  /** How many there are. */
  readonly waiting: number;

  /** Finds out whom they name, some at a time, and tells it, until it is told to give up. What names nobody is forgotten. */
  lookUp(tell: Tell, giveUp?: AbortSignal): Promise<void>;

  /** Takes the number of those that were passed over. */
  takeUntold(): number;
}

interface Attempts {
  readonly facts: CallFacts;
  /** The key of the first of them. */
  readonly key: string;
  count: number;
  /** How many came with another key that names the same. */
  others: number;
}

/** How many may wait, which is more than a process can refuse between two looks; those beyond are passed over. */
export const mostWaiting = 20_000;

/** How many are looked up at a time. */
const lookedUpTogether = 200;

export function createRefusedKeys(findNamed: FindNamed): RefusedKeys {
  const waiting = new Map<string, Attempts>();
  let untold = 0;

  /** Whoever guesses a key knows the id in it at best, so what names the same is held together. */
  function hold(name: string, key: string, facts: CallFacts): void {
    const attempts = waiting.get(name);
    if (!attempts && waiting.size >= mostWaiting) {
      untold++;
    } else if (!attempts) {
      waiting.set(name, { facts, key, count: 1, others: 0 });
    } else if (attempts.key === key) {
      attempts.count++;
    } else {
      attempts.others++;
    }
  }

  async function lookUpOne(name: string, attempts: Attempts, tell: Tell): Promise<void> {
    const named = await findNamed(attempts.key);
    waiting.delete(name);
    if (!named) {
      return;
    }
    const { owner, why = unknown } = named;
    const { tenantId } = owner.application;
    const { key: _key, ...withoutKey } = owner;
    const { facts, count, others } = attempts;
    tell({ ...facts, tenantId, target: actorOf(owner), reason: why }, count);
    if (others > 0) {
      tell({ ...facts, tenantId, target: actorOf(withoutKey), reason: unknown }, others);
    }
  }

  return {
    add(key, facts) {
      const parsed = parseKey(key);
      if (parsed) {
        hold(`${parsed.kind} ${parsed.id} ${facts.method} ${facts.address}`, key, facts);
      }
    },

    get waiting() {
      return waiting.size;
    },

    async lookUp(tell, giveUp) {
      const all = [...waiting];
      for (let at = 0; at < all.length && !giveUp?.aborted; at += lookedUpTogether) {
        if (at > 0) {
          await nextTurn();
        }
        const some = all.slice(at, at + lookedUpTogether);
        await Promise.all(some.map(([name, attempts]) => lookUpOne(name, attempts, tell)));
      }
    },

    takeUntold() {
      const count = untold;
      untold = 0;
      return count;
    },
  };
}

/** The reason of a key that is none of those that it names. */
const unknown = "unknown_key";
