/** The data cannot be reached now; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** An application has as many open sessions as it may have. */
export class SessionQuotaReached extends Error {
  override readonly name = "SessionQuotaReached";

  /** @param wait In how many milliseconds the first of them expires. */
  constructor(readonly wait: number) {
    super("The application has as many open sessions as it may have.");
  }
}

/** The change would leave a tenant without an application that manages it. Nothing is written. */
export class LastManager extends Error {
  override readonly name = "LastManager";

  constructor() {
    super("No other enabled application of the tenant can create and update applications.");
  }
}

/** The caller of a change was revoked, or has other rights than when the change was decided on. Nothing is written. */
export class CallerChanged extends Error {
  override readonly name = "CallerChanged";
}

/** The change was made before, by a call that came at the same time. */
export class AnswerKept extends Error {
  override readonly name = "AnswerKept";
}
