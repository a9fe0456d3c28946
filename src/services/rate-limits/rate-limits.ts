import type { ContextValues } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Caller, callKey } from "../../auth/caller.js";
import type { ReadAddressOf } from "../../auth/caller-address.js";
import type { RateLimitSettings } from "../../config/rate-limits.js";
import { type Problem, rateLimited } from "../../errors.js";
import { createGenerationalCache } from "../../lib/cache.js";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import { type Address, homeOf } from "../../lib/networks.js";
import type { RateCounts } from "../../store/port/rate-counts.js";
import type { Clock } from "../../store/port/store.js";
import { createBuckets, createSharedBuckets, createStoreStatus } from "./buckets.js";

/** Says of calls that come too fast why they are refused, and of others nothing. */
export interface RateLimits {
  /** Counts a call with a key that works: by the key, or where it is for all to see by its application and the address. */
  countCall(caller: Caller, values: ContextValues): MaybePromise<Problem | undefined>;

  /** Counts the checks of a call, by the same as the call; it is the first of them. */
  checksOf(caller: Caller, values: ContextValues): CountChecks;

  /** Counts a session that was refused, for the metrics alone. */
  countRefusedSession(): void;

  /** Counts a call with a key that does not, by the address. */
  countFailure(values: ContextValues): MaybePromise<Problem | undefined>;
}

interface RateLimitsOptions {
  readonly settings: RateLimitSettings;
  /** What processes count together by, where the store has it. */
  readonly counts: RateCounts | undefined;
  readonly readAddressOf: ReadAddressOf;
  /** Called with the limit of each call that is refused. */
  readonly onRefusal?: ((limit: LimitName | "sessions") => void) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

type LimitName = "public" | "private" | "management" | "failures";

/** Counts checks that come together, all or none of them. */
type CountChecks = (checks: number) => MaybePromise<Problem | undefined>;

interface Limit {
  /** Counts so many more under a name, and says why they are refused where they are. */
  count(name: string, count: number): MaybePromise<Problem | undefined>;
  /** Says why checks are refused that are more than can ever come together, where they are. */
  refuseTooMany(checks: number): Problem | undefined;
}

export function createRateLimits(options: RateLimitsOptions): RateLimits {
  const { settings, onRefusal, clock, log } = options;
  const counts = settings.shared ? options.counts : undefined;
  const contact = createStoreStatus(log);
  const countedAddressOf = createAddressKey(options.readAddressOf);

  function createLimit(kind: LimitName, detail: string): Limit | undefined {
    const rate = settings[kind];
    if (!rate) {
      return undefined;
    }
    const buckets = counts ? createSharedBuckets(kind, rate, counts, contact) : createBuckets(rate);
    const refuse = (detail: string, wait: number): Problem => {
      onRefusal?.(kind);
      return rateLimited(detail, wait, clock());
    };
    const refuseUntil = (wait: number) => (wait === 0 ? undefined : refuse(detail, wait));
    const { count: fills, interval, burst } = rate;
    return {
      count: (name, count) => mapMaybePromise(buckets.take(name, count), refuseUntil),

      refuseTooMany(checks) {
        const most = `A call with this key may make at most ${burst} checks, not ${checks}.`;
        return checks > burst ? refuse(most, Math.ceil((burst * interval) / fills)) : undefined;
      },
    };
  }

  const tooManyCalls = "Too many calls or checks came with this key.";
  const limits = {
    public: createLimit("public", tooManyCalls),
    private: createLimit("private", tooManyCalls),
    management: createLimit("management", tooManyCalls),
    failures: createLimit(
      "failures",
      "Too many wrong keys came from this address. Send one that works.",
    ),
  };

  /** The limit of a caller, if it has one. */
  function limitOf({ application, session }: Caller): Limit | undefined {
    return limits[session ? "public" : application.type];
  }

  /** What a caller is counted under. With a bucket for each of its sessions, whoever has a public key would have as many as it opens. */
  function bucketOf({ application, session, key }: Caller, values: ContextValues): string {
    return session || application.type === "public"
      ? `${application.id} ${countedAddressOf(values)}`
      : (key ?? application).id;
  }

  return {
    countCall(caller, values) {
      return limitOf(caller)?.count(bucketOf(caller, values), 1);
    },

    checksOf(caller, values) {
      const limit = limitOf(caller);
      if (!limit) {
        return () => undefined;
      }
      const name = bucketOf(caller, values);
      let counted = 1;
      return (checks) => {
        const more = checks - counted;
        counted = 0;
        return limit.refuseTooMany(checks) ?? (more > 0 ? limit.count(name, more) : undefined);
      };
    },

    countRefusedSession: () => onRefusal?.("sessions"),

    countFailure: (values) => limits.failures?.count(countedAddressOf(values), 1),
  };
}

/** What calls are counted by that come from an address. */
type AddressKey = (values: ContextValues) => string;

/** How many addresses each of two generations may keep. */
const generationSize = 1_000;

/** Creates what reads the address of a connection once, as long as calls come over it. */
export function createAddressKey(readAddressOf: ReadAddressOf): AddressKey {
  const known = createGenerationalCache<string>(generationSize, 1);
  return (values) => {
    const { address, headers } = values.get(callKey).peer;
    // What a proxy says is not kept: anybody can write it, at any length.
    if (headers["x-forwarded-for"] !== undefined) {
      return countedAddress(readAddressOf({ values }));
    }
    return (
      known.get(address, 0) ?? known.add(address, 0, countedAddress(readAddressOf({ values })), 1)
    );
  };
}

function countedAddress(address: Address | undefined): string {
  return address ? homeOf(address) : "";
}
