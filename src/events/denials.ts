import { Code, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import type { Logger } from "pino";
import { callKey } from "../caller.js";
import type { AddressOf } from "../caller-address.js";
import { nameOfMethod } from "../contract.js";
import type { Problem } from "../errors.js";
import { createFindNamed } from "../identify.js";
import type { Keyring } from "../keys.js";
import type { NewEvent } from "../store/events.js";
import type { Store } from "../store/store.js";
import { type CountedDenials, createDenialCounts } from "./denial-counts.js";
import { createRefusedKeys } from "./refused-keys.js";
import { actorOf } from "./trail.js";

/** Brings calls that were refused into the trail of their tenant. */
export interface Denials {
  /** Notes that a call was refused. Nothing is looked up or written before the call is answered. */
  note(request: UnaryRequest | StreamRequest, problem: Problem): void;

  /** How many calls, those that are alike counted as one, are to be told of. */
  readonly waiting: number;

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
    const untold = counts.takeUntold() + refusedKeys.takeUntold();
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
    note({ method, header, contextValues }, { code, word: reason }) {
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

    get waiting() {
      return taken.length + counts.waiting + refusedKeys.waiting;
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
