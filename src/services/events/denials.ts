import { Code } from "@connectrpc/connect";
import type { Logger } from "pino";
import { createFindClaimedOwner, type FindClaimedOwner } from "../../auth/authenticate.js";
import type { Caller } from "../../auth/caller.js";
import type { AddressOf } from "../../auth/caller-address.js";
import type { Keyring } from "../../auth/keys.js";
import type { ReadKey } from "../../auth/read-key.js";
import type { Call } from "../../call.js";
import { parseKey } from "../../contract/key-format.js";
import { methodName } from "../../contract/methods.js";
import type { Problem } from "../../errors.js";
import { waitForNextTick } from "../../lib/event-loop.js";
import type { NewEvent } from "../../store/port/events.js";
import type { Store } from "../../store/port/store.js";
import { actorOf } from "./audit.js";
import { type CountedDenials, createDenialCounts, type Denial } from "./denial-counts.js";

/** Writes denied calls to the audit log of their tenant. */
export interface Denials {
  /** Records a denied call, without a caller if its key or signature is invalid. Lookups and writes happen later, after the response. */
  record(call: Call, caller: Caller | undefined, problem: Problem): void;

  /** Denials not yet written, with similar ones counted as one. */
  readonly pending: number;

  /** Writes all pending denials and stops. The signal makes it stop before all are written. */
  close(signal?: AbortSignal): Promise<void>;
}

interface DenialsOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly readKey: ReadKey;
  readonly log: Logger;
}

/** Milliseconds between two writes. */
const interval = 1_000;

/** Events per write. */
const batchSize = 500;

export function createDenials(options: DenialsOptions): Denials {
  const { store, keyring, addressOf, readKey, log } = options;
  const counts = createDenialCounts();
  const refusedKeys = createRefusedKeys(createFindClaimedOwner(store, keyring));
  let writing: Promise<void> | undefined;
  let taken: CountedDenials[] = [];
  let closeSignal: AbortSignal | undefined;

  async function write(now: number): Promise<void> {
    await attempt(() => refusedKeys.lookUp(counts.add, closeSignal));
    await attempt(() => writeEvents(now));
    const dropped = counts.takeDropped() + refusedKeys.takeDropped();
    if (dropped > 0) {
      log.warn({ dropped }, "too many denied calls: some are missing in the audit log");
    }
  }

  async function writeEvents(now: number): Promise<void> {
    taken = counts.take(now);
    try {
      while (taken.length > 0 && !closeSignal?.aborted) {
        await store.events.add(taken.slice(0, batchSize).map(toEvent));
        taken.splice(0, batchSize);
      }
    } finally {
      for (const { denial, count } of taken.splice(0)) {
        counts.add(denial, count);
      }
    }
  }

  /** Failed work is retried at the next interval. */
  async function attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      log.warn({ err }, "could not write denied calls to the audit log: retrying");
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
    record(call, caller, { code, problemCode: reason, target }) {
      const { method, peer, requestId } = call;
      const callFields = {
        method: methodName(method),
        address: addressOf(peer),
        requestId,
      };
      if (!caller) {
        // An invalid signature says nothing about a key in the same call.
        if (reason === "unauthenticated") {
          refusedKeys.add(readKey(call), callFields);
        }
        return;
      }
      const { tenantId } = caller.application;
      const principal = actorOf(caller);
      // A caller without permission is the actor. A caller whose key has expired is only the target.
      const principals =
        code === Code.PermissionDenied ? { actor: principal, target } : { target: principal };
      counts.add({ ...callFields, ...principals, tenantId, reason }, 1);
    },

    get pending() {
      return taken.length + counts.pending + refusedKeys.pending;
    },

    async close(signal) {
      closeSignal = signal;
      clearInterval(timer);
      await writing;
      await write(Number.POSITIVE_INFINITY);
    },
  };
}

function toEvent({ denial, count }: CountedDenials): NewEvent {
  return { ...denial, kind: "access.denied", outcome: "denied", ...(count > 1 && { count }) };
}

type CallFields = Required<Pick<Denial, "method" | "address" | "requestId">>;

type AddDenial = (denial: Denial, count: number) => void;

/** Holds invalid keys until their owners are looked up, so that callers do not wait for the lookup. */
interface RefusedKeys {
  /** Takes the same time whether or not the key has an owner. */
  add(key: string, callFields: CallFields): void;

  readonly pending: number;

  /** Looks up the owners in batches and adds the denials. Keys without an owner are dropped. */
  lookUp(addDenial: AddDenial, signal?: AbortSignal): Promise<void>;

  /** Returns and resets the number of dropped calls. */
  takeDropped(): number;
}

interface Attempts {
  readonly callFields: CallFields;
  /** The key of the first attempt. */
  readonly key: string;
  count: number;
  /** Attempts with other keys that contain the same id. */
  others: number;
}

/** More than a process can refuse in one interval. Further attempts are dropped. */
export const maxPending = 20_000;

const lookupBatchSize = 200;

function createRefusedKeys(findClaimedOwner: FindClaimedOwner): RefusedKeys {
  const pending = new Map<string, Attempts>();
  let dropped = 0;

  /** Groups attempts by the id in the key: an attacker knows at most the id. */
  function addAttempt(group: string, key: string, callFields: CallFields): void {
    const attempts = pending.get(group);
    if (!attempts && pending.size >= maxPending) {
      dropped++;
    } else if (!attempts) {
      pending.set(group, { callFields, key, count: 1, others: 0 });
    } else if (attempts.key === key) {
      attempts.count++;
    } else {
      attempts.others++;
    }
  }

  async function lookUpOne(group: string, attempts: Attempts, addDenial: AddDenial): Promise<void> {
    const found = await findClaimedOwner(attempts.key);
    pending.delete(group);
    if (!found) {
      return;
    }
    const { owner, reason = unknownKey } = found;
    const { tenantId } = owner.application;
    const { key: _key, ...withoutKey } = owner;
    const { callFields, count, others } = attempts;
    addDenial({ ...callFields, tenantId, target: actorOf(owner), reason }, count);
    if (others > 0) {
      addDenial(
        { ...callFields, tenantId, target: actorOf(withoutKey), reason: unknownKey },
        others,
      );
    }
  }

  return {
    add(key, callFields) {
      const parsed = parseKey(key);
      if (parsed) {
        addAttempt(
          `${parsed.type} ${parsed.id} ${callFields.method} ${callFields.address}`,
          key,
          callFields,
        );
      }
    },

    get pending() {
      return pending.size;
    },

    async lookUp(addDenial, signal) {
      const all = [...pending];
      for (let start = 0; start < all.length && !signal?.aborted; start += lookupBatchSize) {
        if (start > 0) {
          await waitForNextTick();
        }
        const batch = all.slice(start, start + lookupBatchSize);
        await Promise.all(batch.map(([group, attempts]) => lookUpOne(group, attempts, addDenial)));
      }
    },

    takeDropped() {
      const count = dropped;
      dropped = 0;
      return count;
    },
  };
}

/** The reason for a key that contains an existing id but is not its key. */
const unknownKey = "unknown_key";
