import type { Call, Caller } from "../auth/caller.js";
import type { AddressOf } from "../auth/caller-address.js";
import { createRestrictionCheck } from "../contract/decisions/restrictions.js";
import { isRestricted } from "../contract/grants.js";
import { addressNotAllowed, originNotAllowed, type Problem } from "../errors.js";
import type { ApplicationRecord } from "../store/port/records.js";

/** Throws if a caller may not use its key for a call from this origin or address. */
type CheckRestrictions = (caller: Caller, call: Call) => void;

/** Enforces the allowed origins and networks of a key. A session inherits the restrictions of its application. */
export function createCheckRestrictions(addressOf: AddressOf): CheckRestrictions {
  const restrictionCheck = createRestrictionCheck();

  function refuse(application: ApplicationRecord, call: Call): Problem | undefined {
    const origin = call.header.get("origin") ?? undefined;
    if (!restrictionCheck.allowsOrigin(application, origin)) {
      return originNotAllowed(origin);
    }
    if (application.allowedCidrs.length === 0) {
      return undefined;
    }
    const address = addressOf(call.peer);
    return restrictionCheck.allowsAddress(application, address)
      ? undefined
      : addressNotAllowed(address);
  }

  return ({ application }, call) => {
    const refusal = isRestricted(application) ? refuse(application, call) : undefined;
    if (refusal) {
      throw refusal;
    }
  };
}
