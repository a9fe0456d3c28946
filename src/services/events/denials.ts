import { Code, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createFindNamed, type FindNamed } from "../../auth/authenticate.js";
import { callKey } from "../../auth/caller.js";
import type { AddressOf } from "../../auth/caller-address.js";
import type { Keyring } from "../../auth/keys.js";
import { parseKey } from "../../contract/key-format.js";
import { nameOfMethod } from "../../contract/methods.js";
import type { Problem } from "../../errors.js";
import { waitForNextTick } from "../../lib/event-loop.js";
import type { NewEvent } from "../../store/port/events.js";
import type { Store } from "../../store/port/store.js";
import { actorOf } from "./audit.js";
import { type CountedDenials, createDenialCounts, type Denial } from "./denial-counts.js";

/** Brings calls that were refused into the trail of their tenant. */
export interface Denials {
  /** Notes that a call was refused. Nothing is looked up or written before the call is answered. */
  record(request: UnaryRequest | StreamRequest, problem: Problem): void;

  /** How many calls, those that are alike counted as one, are to be told of. */
  readonly pending: number;

  /** Writes all that waits, and stops; before all is written, once it is told to give up. */
  close(giveUp?: AbortSignal): Promise<void>;
}

interface DenialsOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly keyHeader: string;
  readonly log: Logger;
}

/** How many milliseconds lie between two looks at what waits. */
const interval = 1_000;

/** How many events are written at a time. */
const batchSize = 500;

export function createDenials(options: DenialsOptions): Denials {
  const { store, keyring, addressOf, log } = options;
  const keyHeader = options.keyHeader.toLowerCase();
  const counts = createDenialCounts();
  const refusedKeys = createRefusedKeys(createFindNamed(store, keyring));
  let writing: Promise<void> | undefined;
  let taken: CountedDenials[] = [];
  let ending: AbortSignal | undefined;

  async function write(now: number): Promise<void> {
    await attempt(() => refusedKeys.lookUp(counts.add, ending));
    await attempt(() => tell(now));
    const untold = counts.takeDropped() + refusedKeys.takeDropped();
    if (untold > 0) {
      log.warn({ untold }, "too many calls were refused to tell of all in the trail of events");
    }
  }

  async function tell(now: number): Promise<void> {
    taken = counts.take(now);
    try {
      while (taken.length > 0 && !ending?.aborted) {
        await store.events.add(taken.slice(0, batchSize).map(toEvent));
        taken.splice(0, batchSize);
      }
    } finally {
      for (const { denial, count } of taken.splice(0)) {
        counts.add(denial, count);
      }
    }
  }

  /** What is not done is tried again the next time. */
  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      log.warn({ err }, "calls that were refused could not be told in the trail of events");
    }
  }

  function writeDue(): void {
    writing ??= write(performance.now()).finally(() => {
      writing = undefined;
    });
  }

  const timer = setInterval(writeDue, interval);
  timer.unref();

  return {
    record({ method, header, contextValues }, { code, word: reason }) {
      const { caller, requestId, target = {} } = contextValues.get(callKey);
      const facts = {
        method: nameOfMethod(method),
        address: addressOf({ values: contextValues }),
        requestId,
      };
      if (!caller) {
        refusedKeys.add(header.get(keyHeader) ?? "", facts);
        return;
      }
      const { tenantId } = caller.application;
      const party = actorOf(caller);
      // Who may not is the one that acts; whose key has come to its end meanwhile is nobody any more.
      const parties = code === Code.PermissionDenied ? { actor: party, target } : { target: party };
      counts.add({ ...facts, ...parties, tenantId, reason }, 1);
    },

    get pending() {
      return taken.length + counts.pending + refusedKeys.pending;
    },

    async close(giveUp) {
      ending = giveUp;
      clearInterval(timer);
      await writing;
      await write(Number.POSITIVE_INFINITY);
    },
  };
}

function toEvent({ denial, count }: CountedDenials): NewEvent {
  return { ...denial, kind: "access.denied", outcome: "denied", ...(count > 1 && { count }) };
}

/** What is known of a call whose key does not work. */
type CallFacts = Required<Pick<Denial, "method" | "address" | "requestId">>;

type Tell = (denial: Denial, count: number) => void;

/** Holds keys that were refused until it is found out whom they name, which callers must not wait for. */
interface RefusedKeys {
  /** Takes the same time whether or not a key names anybody. */
  add(key: string, facts: CallFacts): void;

  /** How many there are. */
  readonly pending: number;

  /** Finds out whom they name, some at a time, and tells it, until it is told to give up. What names nobody is forgotten. */
  lookUp(tell: Tell, giveUp?: AbortSignal): Promise<void>;

  /** Takes the number of those that were passed over. */
  takeDropped(): number;
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
export const maxPending = 20_000;

/** How many are looked up at a time. */
const lookedUpTogether = 200;

function createRefusedKeys(findNamed: FindNamed): RefusedKeys {
  const waiting = new Map<string, Attempts>();
  let untold = 0;

  /** Whoever guesses a key knows the id in it at best, so what names the same is held together. */
  function hold(name: string, key: string, facts: CallFacts): void {
    const attempts = waiting.get(name);
    if (!attempts && waiting.size >= maxPending) {
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

    get pending() {
      return waiting.size;
    },

    async lookUp(tell, giveUp) {
      const all = [...waiting];
      for (let at = 0; at < all.length && !giveUp?.aborted; at += lookedUpTogether) {
        if (at > 0) {
          await waitForNextTick();
        }
        const some = all.slice(at, at + lookedUpTogether);
        await Promise.all(some.map(([name, attempts]) => lookUpOne(name, attempts, tell)));
      }
    },

    takeDropped() {
      const count = untold;
      untold = 0;
      return count;
    },
  };
}

/** The reason of a key that is none of those that it names. */
const unknown = "unknown_key";
