import type { Logger } from "pino";
import type { Caller } from "../auth/caller.js";
import type { ReadAddressOf } from "../auth/caller-address.js";
import type { Call, DescribedLimit, Peer } from "../call.js";
import { isDefaultRate, type RateLimitSettings } from "../config/limits.js";
import { invalidRequest, type Problem, rateLimited } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { createGenerationalCache } from "../lib/cache.js";
import { type Address, clientNetworkKey } from "../lib/networks.js";
import type { SessionQuota } from "../store/port/errors.js";
import type { Clock, RateCounts } from "../store/port/store.js";
import { createBuckets, createSharedBuckets, createStoreStatus } from "./buckets.js";
import { createRateLimitHeaders } from "./headers.js";

/** Notified of the limit that a call counts against. */
type CountObserver = Pick<Call, "onCounted">;

/** Counts calls and returns a problem for those that exceed a limit. */
export interface RateLimits {
  /** Counts a call with a valid key: per key, or per application and address if the key is public. */
  countCall(
    caller: Caller,
    peer: Peer,
    observer?: CountObserver,
  ): MaybePromise<Problem | undefined>;

  /** Counts the checks of a call in the same bucket. The call itself counts as the first check. */
  createCheckCounter(caller: Caller, peer: Peer): CountChecks;

  /** Counts a session that is opened, per application and address. */
  countOpenedSession(caller: Caller, peer: Peer): MaybePromise<Problem | undefined>;

  /** Counts a session refused by a quota, for metrics only. */
  countRefusedSession(quota: SessionQuota): void;

  /** Counts a call with an invalid key or signature, or one that revokes a key, per address. */
  countFailure(peer: Peer): MaybePromise<Problem | undefined>;

  /** Counts a call by which an expired session ends itself, per address, at the rate of public keys. */
  countEndedSession(peer: Peer): MaybePromise<Problem | undefined>;
}

interface RateLimitsOptions {
  readonly settings: RateLimitSettings;
  /** Counts shared by processes, if the store supports them. */
  readonly counts: RateCounts | undefined;
  readonly readAddressOf: ReadAddressOf;
  /** Called with the name of the limit for each refused call. */
  readonly onRefusal?: ((limit: LimitName | (typeof quotaNames)[SessionQuota]) => void) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

type LimitName = "public" | "private" | "management" | "failures" | "create_session";

/** The names of the quotas in metrics. */
const quotaNames = {
  authorized: "sessions",
  unauthorized: "unauthorized_sessions",
  network: "network_sessions",
} as const satisfies Record<SessionQuota, string>;

/**
 * The default limits are above what most callers need, so responses describe them
 * only once less than this share of the burst is left: the headers cost 400 bytes
 * per call.
 */
const describedShare = 0.5;
const noHeaders: readonly string[] = [];

/**
 * Counts a group of checks, all or none. More than the burst could never pass, so a
 * retry cannot help: they are refused as an error of the field that asks for them.
 */
type CountChecks = (checks: number, field?: string) => MaybePromise<Problem | undefined>;

interface Limit extends DescribedLimit {
  count(name: string, count: number): MaybePromise<Problem | undefined>;
  readonly burst: number;
}

export function createRateLimits(options: RateLimitsOptions): RateLimits {
  const { settings, onRefusal, clock, log } = options;
  const counts = settings.shared ? options.counts : undefined;
  const storeStatus = createStoreStatus(log);
  const addressKey = createAddressKey(options.readAddressOf);

  function createLimit(kind: LimitName, detail: string): Limit | undefined {
    const rate = settings[kind];
    if (!rate) {
      return undefined;
    }
    const { burst } = rate;
    const isDefault = isDefaultRate(rate);
    const headers = createRateLimitHeaders(kind, rate);
    const ownBuckets = counts ? undefined : createBuckets(rate);
    const buckets =
      ownBuckets ?? createSharedBuckets(kind, rate, counts as RateCounts, storeStatus);

    function refuseFor(wait: number, name: string, count: number): Problem {
      onRefusal?.(kind);
      return rateLimited(
        `${detail} Retry in ${Math.ceil(wait / 1_000)} s.`,
        wait,
        clock(),
        headersOfRefusal(wait, name, count),
      );
    }

    /** No process knows how many tokens are left in a shared bucket. */
    function headersOfRefusal(wait: number, name: string, count: number): readonly string[] {
      if (ownBuckets) {
        return headers.ofTokens(ownBuckets.remaining(name));
      }
      return count === 1 ? headers.ofEmpty(wait) : headers.policy;
    }

    /** A separate function, because calls that are not refused must not pay for its closure. */
    function refuseIfEmpty(taking: MaybePromise<number>, name: string, count: number) {
      return mapMaybePromise(taking, (wait) =>
        wait === 0 ? undefined : refuseFor(wait, name, count),
      );
    }

    return {
      count(name, count) {
        const wait = buckets.take(name, count);
        return wait === 0 ? undefined : refuseIfEmpty(wait, name, count);
      },

      burst,

      headersOf(name) {
        const tokens = ownBuckets?.remaining(name);
        const isDescribed = tokens !== undefined && (!isDefault || tokens < describedShare * burst);
        return isDescribed ? headers.ofTokens(tokens) : noHeaders;
      },
    };
  }

  const tooManyCalls = "Too many calls or checks with this key.";
  const limits = {
    public: createLimit("public", tooManyCalls),
    private: createLimit("private", tooManyCalls),
    management: createLimit("management", tooManyCalls),
    create_session: createLimit(
      "create_session",
      "Too many sessions are opened from this address.",
    ),
    failures: createLimit(
      "failures",
      "Too many invalid keys, revocations or invalid signatures from this address.",
    ),
  };

  function limitOf({ application, session }: Caller): Limit | undefined {
    return limits[session ? "public" : application.type];
  }

  /** The bucket of a caller. Sessions share that of their application: a bucket per session could be multiplied at will. */
  function bucketOf({ application, session, key }: Caller, peer: Peer): string {
    return session || application.type === "public"
      ? `${application.id} ${addressKey(peer)}`
      : (key ?? application).id;
  }

  return {
    countCall(caller, peer, observer) {
      const limit = limitOf(caller);
      if (!limit) {
        return undefined;
      }
      const name = bucketOf(caller, peer);
      observer?.onCounted(limit, name);
      return limit.count(name, 1);
    },

    createCheckCounter(caller, peer) {
      const limit = limitOf(caller);
      if (!limit) {
        return () => undefined;
      }
      const name = bucketOf(caller, peer);
      let counted = 1;
      return (checks, field = "checks") => {
        if (checks > limit.burst) {
          const message = `needs ${checks} checks, but the rate limit of this key allows at most ${limit.burst} per call: split the request`;
          return invalidRequest({ field, message, code: "rate_limit.burst" });
        }
        const more = checks - counted;
        counted = 0;
        return more > 0 ? limit.count(name, more) : undefined;
      };
    },

    countOpenedSession: (caller, peer) => limits.create_session?.count(bucketOf(caller, peer), 1),

    countRefusedSession: (quota) => onRefusal?.(quotaNames[quota]),

    countFailure: (peer) => limits.failures?.count(addressKey(peer), 1),

    countEndedSession: (peer) => limits.public?.count(addressKey(peer), 1),
  };
}

/** Throws the refusal of a rate limit. */
export function throwIfRefused(refusal: Problem | undefined): void {
  if (refusal) {
    throw refusal;
  }
}

/** The bucket name of a call's client network. */
type AddressKey = (peer: Peer) => string;

/** Addresses in each of the two cache generations. */
const generationSize = 1_000;

/** Parses the address of a connection once and caches the result. */
export function createAddressKey(readAddressOf: ReadAddressOf): AddressKey {
  const cache = createGenerationalCache<string>(generationSize, 1);
  return (peer) => {
    const { address, headers } = peer;
    // Not cached: the client controls the content and length of the header.
    if (headers["x-forwarded-for"] !== undefined) {
      return networkKey(readAddressOf(peer));
    }
    return cache.get(address, 0) ?? cache.add(address, 0, networkKey(readAddressOf(peer)), 1);
  };
}

function networkKey(address: Address | undefined): string {
  return address ? clientNetworkKey(address) : "";
}
