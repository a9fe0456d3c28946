import type { DescMethod } from "@bufbuild/protobuf";
import type { Authenticate, IdentifyCertificate } from "../auth/authenticate.js";
import type { Call, Caller } from "../auth/caller.js";
import type { ReadKey } from "../auth/read-key.js";
import { accessOf } from "../contract/methods.js";
import { unauthenticated } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";

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
  readonly readKey: ReadKey;
  readonly keyHeader: string;
  readonly rateLimits: Pick<RateLimits, "countFailure">;
}

/**
 * Failures are counted only for invalid keys, so a valid key works from an
 * address that also sends invalid ones.
 */
export function createCallAuthentication({
  identify,
  identifyCertificate,
  readKey,
  keyHeader,
  rateLimits,
}: CallAuthenticationOptions): CallAuthentication {
  const optionsOf = memoize((method: DescMethod) => {
    const access = accessOf(method);
    return {
      keyHeader: access.keyHeader || keyHeader,
      acceptsAuthorization: access.authorizationHeader,
      acceptsCertificate: access.clientCertificate,
    };
  });

  function refuse(call: Call, isGuess: boolean): MaybePromise<never> {
    const counting = isGuess ? rateLimits.countFailure(call.peer) : undefined;
    return mapMaybePromise(counting, (refusal) => {
      const { keyHeader, acceptsAuthorization } = optionsOf(call.method);
      throw refusal ?? unauthenticated(keyHeader, acceptsAuthorization);
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
          return refuse(call, key !== "");
        }
        return caller;
      });
    },

    authenticateAgain: (call) =>
      mapMaybePromise(find(call, readKey(call)), (caller) => caller ?? refuse(call, false)),
  };
}
