import type { ContextValues } from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Awaitable, whenThere } from "../awaitable.js";
import type { Caller } from "../caller.js";
import type { ReadAddressOf } from "../caller-address.js";
import { type Problem, rateLimited } from "../errors.js";
import type { RateLimitSettings } from "../rate-limit-settings.js";
import type { RateCounts } from "../store/rate-counts.js";
import type { Clock } from "../store/store.js";
import { createBuckets } from "./buckets.js";
import { createCountedAddressOf } from "./counted-address.js";
import { createSharedBuckets } from "./shared-buckets.js";
import { createStoreContact } from "./store-contact.js";

/** Says of calls that come too fast why they are refused, and of others nothing. */
export interface RateLimits {
  /** Counts a call with a key that works: by the key, or where it is for all to see by its application and the address. */
  countCall(caller: Caller, values: ContextValues): Awaitable<Problem | undefined>;

  /** Counts a call with a key that does not, by the address. */
  countFailure(values: ContextValues): Awaitable<Problem | undefined>;
}

interface RateLimitsOptions {
  readonly settings: RateLimitSettings;
  /** What processes count together by, where the store has it. */
  readonly counts: RateCounts | undefined;
  readonly readAddressOf: ReadAddressOf;
  /** Called with the limit of each call that is refused. */
  readonly onRefusal?: ((limit: LimitName) => void) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

type LimitName = "public" | "private" | "management" | "failures";

/** Counts one more under a name, and says why it is refused where it is. */
type Limit = (name: string) => Awaitable<Problem | undefined>;

export function createRateLimits(options: RateLimitsOptions): RateLimits {
  const { settings, onRefusal, clock, log } = options;
  const counts = settings.areShared ? options.counts : undefined;
  const contact = createStoreContact(log);
  const countedAddressOf = createCountedAddressOf(options.readAddressOf);

  function createLimit(kind: LimitName, detail: string): Limit | undefined {
    const rate = settings[kind];
    if (!rate) {
      return undefined;
    }
    const buckets = counts ? createSharedBuckets(kind, rate, counts, contact) : createBuckets(rate);
    const refuse = (wait: number): Problem | undefined => {
      if (wait === 0) {
        return undefined;
      }
      onRefusal?.(kind);
      return rateLimited(detail, wait, clock());
    };
    return (name) => whenThere(buckets.take(name), refuse);
  }

  const tooManyCalls = "Too many calls came with this key.";
  const limits = {
    public: createLimit("public", tooManyCalls),
    private: createLimit("private", tooManyCalls),
    management: createLimit("management", tooManyCalls),
    failures: createLimit(
      "failures",
      "Too many wrong keys came from this address. Send one that works.",
    ),
  };

  return {
    countCall({ application, session, key }, values) {
      const type = session ? "public" : application.type;
      const limit = limits[type];
      if (!limit) {
        return undefined;
      }
      if (type === "public") {
        // With a bucket for each of its sessions, whoever has the key would have as many as it opens.
        return limit(`${application.id} ${countedAddressOf(values)}`);
      }
      return limit((key ?? application).id);
    },

    countFailure: (values) => limits.failures?.(countedAddressOf(values)),
  };
}
