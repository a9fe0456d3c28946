/** The data is temporarily unavailable. The same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** A precondition of a change failed. */
export abstract class Refusal extends Error {}

/** Authorized sessions, unauthorized ones, or unauthorized ones that one network opened. */
export type SessionQuota = "authorized" | "unauthorized" | "network";

export class SessionQuotaReached extends Refusal {
  override readonly name = "SessionQuotaReached";

  /** @param wait Milliseconds until the first of the sessions expires. */
  constructor(
    readonly quota: SessionQuota,
    readonly limit: number,
    readonly wait: number,
  ) {
    super(`The application has reached its quota of sessions: ${quota}.`);
  }
}

/** The change would leave a tenant without a manager. Nothing is written. */
export class LastManager extends Refusal {
  override readonly name = "LastManager";

  constructor() {
    super("No other enabled application of the tenant can create and update applications.");
  }
}

/** Another unexpired application of the tenant has the external id. Nothing is written. */
export class ExternalIdTaken extends Refusal {
  override readonly name = "ExternalIdTaken";

  constructor(readonly externalId: string) {
    super("Another application of the tenant has the external id.");
  }
}

/** The caller of a change was revoked, or its permissions changed. Nothing is written. */
export class CallerChanged extends Refusal {
  override readonly name = "CallerChanged";
}

/** A concurrent call with the same idempotency key already made the change. */
export class AlreadyApplied extends Refusal {
  override readonly name = "AlreadyApplied";
}

/** The call was canceled before its change was written. */
export class ChangeCanceled extends Refusal {
  override readonly name = "ChangeCanceled";
}
