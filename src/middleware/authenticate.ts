import type { DescMethod } from "@bufbuild/protobuf";
import type { Authenticate, FindClaimedOwner, IdentifyCertificate } from "../auth/authenticate.js";
import type { Caller } from "../auth/caller.js";
import type { ReadKey } from "../auth/read-key.js";
import type { Call } from "../call.js";
import { parseKey } from "../contract/key-format.js";
import { accessOf } from "../contract/methods.js";
import { type Problem, unauthenticated } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { RateLimits } from "../limits/rate-limits.js";

/** Authenticates the caller of a call by its key or client certificate, or throws. */
type AuthenticateCall = (call: Call) => MaybePromise<Caller>;

interface CallAuthentication {
  readonly authenticate: AuthenticateCall;
  /** For a call whose key was valid before. */
  readonly authenticateAgain: AuthenticateCall;
}

interface CallAuthenticationOptions {
  readonly identify: Authenticate;
  readonly identifyCertificate: IdentifyCertificate;
  readonly findClaimedOwner: FindClaimedOwner;
  readonly readKey: ReadKey;
  readonly keyHeader: string;
  readonly bearerKeys: boolean;
  readonly rateLimits: Pick<RateLimits, "countFailure" | "countEndedSession">;
}

/**
 * Failures are counted only for invalid keys, so a valid key works from an
 * address that also sends invalid ones.
 */
export function createCallAuthentication({
  identify,
  identifyCertificate,
  findClaimedOwner,
  readKey,
  keyHeader,
  bearerKeys,
  rateLimits,
}: CallAuthenticationOptions): CallAuthentication {
  const optionsOf = memoize((method: DescMethod) => {
    const access = accessOf(method);
    return {
      keyHeader: access.keyHeader || keyHeader,
      isForGateways: access.keyHeader !== "",
      // That of a gateway's call is the client's.
      bearer: access.keyHeader === "" && (access.authorizationHeader || bearerKeys),
      basic: access.authorizationHeader,
      acceptsCertificate: access.clientCertificate,
      isForOwnSession: access.ownSession !== "",
    };
  });

  /**
   * Whether a session revokes itself although it has expired or its application is disabled. The key must
   * match that of the stored session: otherwise the limit would reveal which sessions exist.
   */
  function isOfEndedSession(call: Call, key: string): MaybePromise<boolean> {
    const isPossible = optionsOf(call.method).isForOwnSession && parseKey(key)?.type === "ses";
    return (
      isPossible && mapMaybePromise(findClaimedOwner(key), (found) => found?.reason !== undefined)
    );
  }

  function countFailure({ peer }: Call, isEnded: boolean): MaybePromise<Problem | undefined> {
    return isEnded ? rateLimits.countEndedSession(peer) : rateLimits.countFailure(peer);
  }

  function refuse(call: Call, key: string, isGuess: boolean): MaybePromise<never> {
    const counting = isGuess
      ? mapMaybePromise(isOfEndedSession(call, key), (isEnded) => countFailure(call, isEnded))
      : undefined;
    return mapMaybePromise(counting, (refusal) => {
      const { keyHeader, isForGateways, bearer, basic } = optionsOf(call.method);
      const hasUnreadAuthorization =
        !isForGateways && !bearer && call.header.get("authorization") !== null;
      throw refusal ?? unauthenticated({ keyHeader, key, hasUnreadAuthorization, bearer, basic });
    });
  }

  /** A known certificate wins: the key beside it may come from the client of a gateway. */
  function find(call: Call, key: string): MaybePromise<Caller | undefined> {
    const { acceptsCertificate } = optionsOf(call.method);
    const found = acceptsCertificate && identifyCertificate(call.peer.certificateNames ?? []);
    return found ? found.owner : identify(key);
  }

  return {
    authenticate(call) {
      const key = readKey(call);
      return mapMaybePromise(find(call, key), (caller) => {
        if (!caller) {
          // A missing key is not a guess.
          return refuse(call, key, key !== "");
        }
        return caller;
      });
    },

    authenticateAgain(call) {
      const key = readKey(call);
      return mapMaybePromise(find(call, key), (caller) => caller ?? refuse(call, key, false));
    },
  };
}
