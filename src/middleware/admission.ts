import type { Caller } from "../auth/caller.js";
import type { LastUsedTracker } from "../auth/last-used.js";
import type { AuthorizedCall, Call } from "../call.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { currentTick } from "../lib/event-loop.js";
import { type RateLimits, throwIfRefused } from "../limits/rate-limits.js";
import { CallerChanged } from "../store/port/errors.js";
import type { createCallAuthentication } from "./authenticate.js";
import type { createAuthorize } from "./authorize.js";
import type { WithDeadline } from "./deadline.js";
import type { createAssertWithinRestrictions } from "./restrictions.js";

interface AdmissionOptions {
  readonly authentication: ReturnType<typeof createCallAuthentication>;
  readonly assertWithinRestrictions: ReturnType<typeof createAssertWithinRestrictions>;
  readonly rateLimits: Pick<RateLimits, "countCall">;
  readonly lastUsed: Pick<LastUsedTracker, "record">;
  readonly authorize: ReturnType<typeof createAuthorize>;
  readonly withDeadline: WithDeadline;
}

/** Notified of the caller of a call, even if the call is refused afterwards. */
interface AdmissionObserver {
  onAuthenticated(caller: Caller): void;
}

/** Decides by the headers alone whether a call may run. */
interface Admission {
  /** Admits a call, or throws. */
  admit(call: Call, observer: AdmissionObserver): MaybePromise<AdmittedCall>;

  /**
   * Runs the handler of a unary call, after the caller was authenticated and
   * authorized again if it may have lost its permissions: if the message arrived
   * or was validated in a later tick than the headers, or if the store found
   * that the caller changed during the write. Stream handlers do this themselves.
   */
  run<T>(
    admitted: AdmittedCall,
    handle: (call: AuthorizedCall) => MaybePromise<T>,
  ): MaybePromise<T>;
}

interface AdmittedCall extends AuthorizedCall {
  /** The event loop tick in which the caller was authenticated. */
  readonly authenticatedAtTick: number;
}

export function createAdmission(options: AdmissionOptions): Admission {
  const {
    authentication,
    assertWithinRestrictions,
    rateLimits,
    lastUsed,
    authorize,
    withDeadline,
  } = options;

  class Admitted implements AdmittedCall {
    constructor(
      readonly call: Call,
      readonly caller: Caller,
      readonly authenticatedAtTick: number,
    ) {}

    async reauthorize(): Promise<void> {
      const { call } = this;
      // A unary call has a deadline as a whole.
      await (call.method.methodKind === "unary"
        ? admitAgain(call)
        : withDeadline(call.cancellation, () => admitAgain(call)));
    }
  }

  /** Counts nothing, so it is safe to repeat. */
  function admitAgain(call: Call): MaybePromise<AdmittedCall> {
    return mapMaybePromise(authentication.authenticateAgain(call), (caller) => {
      assertWithinRestrictions(caller, call);
      authorize.call(caller, call.method);
      return new Admitted(call, caller, currentTick());
    });
  }

  async function retry<T>(
    call: Call,
    handle: (call: AuthorizedCall) => MaybePromise<T>,
    reason: unknown,
  ): Promise<T> {
    if (!(reason instanceof CallerChanged) || call.cancellation.reason) {
      throw reason;
    }
    try {
      return await handle(await admitAgain(call));
    } catch (reason) {
      return retry(call, handle, reason);
    }
  }

  return {
    admit(call, observer) {
      return mapMaybePromise(authentication.authenticate(call), (caller) => {
        const tick = currentTick();
        observer.onAuthenticated(caller);
        assertWithinRestrictions(caller, call);
        // After the restrictions: use of a stolen key elsewhere must not exhaust the owner's rate.
        return mapMaybePromise(rateLimits.countCall(caller, call.peer, call), (refusal) => {
          throwIfRefused(refusal);
          // After the restrictions: use from a wrong place is not use by the owner.
          lastUsed.record(caller);
          authorize.call(caller, call.method);
          return new Admitted(call, caller, tick);
        });
      });
    },

    run(admitted, handle) {
      const { call, authenticatedAtTick } = admitted;
      // A GET request arrives with its headers and changes nothing.
      if (call.requestMethod === "GET") {
        return handle(admitted);
      }
      const result =
        authenticatedAtTick === currentTick()
          ? handle(admitted)
          : mapMaybePromise(admitAgain(call), handle);
      return result instanceof Promise
        ? result.catch((reason) => retry(call, handle, reason))
        : result;
    },
  };
}
