import type { MaybePromise } from "./async.js";
import type { Cancellation } from "./cancellation.js";

/**
 * Limits the memory that large responses take together, until their clients have read them. A
 * tenant gets half of it and a caller a quarter, so that slow readers take no memory from others.
 */
export interface ResponseBudget {
  /** Bytes of responses that are built or not read yet. */
  readonly used: number;

  /**
   * Reserves memory before a response is built. If there is none for too long, closes unread
   * responses. Resolves with `undefined` if that is not enough, or the call is canceled.
   */
  reserve(
    owner: ResponseOwner,
    bytes: number,
    cancellation: Canceled,
  ): MaybePromise<CountedResponse | undefined>;

  /** Creates a response that counts from when it is sent. */
  open(owner: ResponseOwner): CountedResponse;
}

/** Whose memory a response takes. */
export interface ResponseOwner {
  readonly tenant: string;
  readonly caller: string;
}

/** A response that takes memory until its client has read it. */
export interface CountedResponse {
  /**
   * Counts the response by its size, as it is sent. It never waits: if there is too little memory,
   * unread responses are closed. From now on it may be one of them, for which `close` is called.
   */
  send(bytes: number, close: () => void): void;

  /** Frees its memory. */
  release(): void;
}

type Canceled = Pick<Cancellation, "reason">;

interface Waiter {
  readonly owner: ResponseOwner;
  readonly bytes: number;
  readonly cancellation: Canceled;
  settle(isReserved: boolean): void;
}

/** A response that was sent, until its client has read it. */
interface Unread {
  readonly owner: ResponseOwner;
  /** Closes it and frees its memory. */
  close(): void;
}

/** Whether the responses of an owner are among those that share some memory. */
type Group = (owner: ResponseOwner) => boolean;

/** Milliseconds that a response waits for memory. */
const defaultMaxWait = 2_000;

/** The most responses of a tenant that wait. More would take the calls of others (`CALL_LIMIT`). */
const maxWaiting = 250;

export function createResponseBudget(limit: number, maxWait = defaultMaxWait): ResponseBudget {
  const usedByTenant = new Map<string, number>();
  const usedByCaller = new Map<string, number>();
  let used = 0;
  /** By caller, the oldest first. */
  const unread = new Map<string, Set<Unread>>();
  const waiting = new Set<Waiter>();
  const waitingByTenant = new Map<string, number>();

  /** The group that has too little memory left: the caller, its tenant or everyone. */
  function fullGroup({ tenant, caller }: ResponseOwner, bytes: number): Group | undefined {
    if (!hasRoom(usedByCaller.get(caller), bytes, limit / 4)) {
      return (other) => other.caller === caller;
    }
    if (!hasRoom(usedByTenant.get(tenant), bytes, limit / 2)) {
      return (other) => other.tenant === tenant;
    }
    return hasRoom(used, bytes, limit) ? undefined : () => true;
  }

  /** Closes unread responses until there is room. Returns whether there is. */
  function makeRoom(owner: ResponseOwner, bytes: number): boolean {
    for (;;) {
      const group = fullGroup(owner, bytes);
      const response = group && oldestOfLargest(group);
      if (!response) {
        return !group;
      }
      response.close();
    }
  }

  /** The oldest unread response of the caller that uses the most, in the tenant that uses the most. */
  function oldestOfLargest(isInGroup: Group): Unread | undefined {
    let found: Unread | undefined;
    for (const [oldest] of unread.values()) {
      if (oldest && isInGroup(oldest.owner) && (!found || usesMore(oldest.owner, found.owner))) {
        found = oldest;
      }
    }
    return found;
  }

  function usesMore(one: ResponseOwner, other: ResponseOwner): boolean {
    return one.tenant === other.tenant
      ? sumOf(usedByCaller, one.caller) > sumOf(usedByCaller, other.caller)
      : sumOf(usedByTenant, one.tenant) > sumOf(usedByTenant, other.tenant);
  }

  function resumeWaiting(): void {
    for (const { owner, bytes, cancellation, settle } of waiting) {
      if (cancellation.reason || !fullGroup(owner, bytes)) {
        settle(!cancellation.reason);
      }
    }
  }

  function wait(
    owner: ResponseOwner,
    bytes: number,
    cancellation: Canceled,
  ): MaybePromise<CountedResponse | undefined> {
    if (sumOf(waitingByTenant, owner.tenant) >= maxWaiting) {
      return undefined;
    }
    return new Promise<CountedResponse | undefined>((resolve) => {
      const waiter: Waiter = {
        owner,
        bytes,
        cancellation,
        settle(isReserved) {
          clearTimeout(timer);
          waiting.delete(waiter);
          add(waitingByTenant, owner.tenant, -1);
          resolve(isReserved ? open(owner, bytes) : undefined);
        },
      };
      const timer = setTimeout(() => {
        const usedBefore = used;
        const isReserved = !cancellation.reason && makeRoom(owner, bytes);
        const hasClosed = used < usedBefore;
        waiter.settle(isReserved);
        // Otherwise, many that time out together would each look at all others.
        if (hasClosed) {
          resumeWaiting();
        }
      }, maxWait);
      waiting.add(waiter);
      add(waitingByTenant, owner.tenant, 1);
    });
  }

  function open(owner: ResponseOwner, reserved = 0): CountedResponse {
    let counted = 0;
    let onClose: (() => void) | undefined;

    function count(bytes: number): void {
      used += bytes - counted;
      add(usedByTenant, owner.tenant, bytes - counted);
      add(usedByCaller, owner.caller, bytes - counted);
      counted = bytes;
    }

    function free(): void {
      count(0);
      const responses = unread.get(owner.caller);
      if (responses?.delete(response) && responses.size === 0) {
        unread.delete(owner.caller);
      }
    }

    const response = {
      owner,

      send(bytes: number, close: () => void) {
        count(0);
        makeRoom(owner, bytes);
        count(bytes);
        onClose = close;
        const responses = unread.get(owner.caller) ?? new Set<Unread>();
        unread.set(owner.caller, responses.add(response));
        resumeWaiting();
      },

      close() {
        free();
        onClose?.();
      },

      release() {
        free();
        resumeWaiting();
      },
    };
    count(reserved);
    return response;
  }

  return {
    get used() {
      return used;
    },

    reserve: (owner, bytes, cancellation) =>
      fullGroup(owner, bytes) ? wait(owner, bytes, cancellation) : open(owner, bytes),

    open,
  };
}

/** Something that nothing else shares the memory with may have any size. */
function hasRoom(used = 0, bytes: number, limit: number): boolean {
  return used === 0 || used + bytes <= limit;
}

function sumOf(sums: ReadonlyMap<string, number>, id: string): number {
  return sums.get(id) ?? 0;
}

function add(sums: Map<string, number>, id: string, change: number): void {
  const sum = sumOf(sums, id) + change;
  if (sum > 0) {
    sums.set(id, sum);
  } else {
    sums.delete(id);
  }
}
