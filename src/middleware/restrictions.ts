import type { DescMethod } from "@bufbuild/protobuf";
import type { Access } from "../../gen/latchkey/v1/options_pb.js";
import type { Caller } from "../auth/caller.js";
import type { AddressOf } from "../auth/caller-address.js";
import type { Call } from "../call.js";
import { createRestrictionCheck } from "../contract/decisions/restrictions.js";
import { isRestricted } from "../contract/grants.js";
import { accessOf } from "../contract/methods.js";
import { addressNotAllowed, originNotAllowed, type Problem } from "../errors.js";
import { memoize } from "../lib/cache.js";
import type { ApplicationRecord } from "../store/port/records.js";

/** Throws if a caller may not use its key for a call from this origin or address. */
type AssertWithinRestrictions = (caller: Caller, call: Call) => void;

/** Enforces the allowed origins and networks of a key. A session inherits the restrictions of its application. */
export function createAssertWithinRestrictions(addressOf: AddressOf): AssertWithinRestrictions {
  const restrictionCheck = createRestrictionCheck();

  const accessFor = memoize<DescMethod, Access>(accessOf);

  function refuse(application: ApplicationRecord, call: Call): Problem | undefined {
    // The headers of a gateway's call describe the request of its client.
    const isGateway = accessFor(call.method).keyHeader !== "";
    const origin = isGateway ? undefined : (call.header.get("origin") ?? undefined);
    if (!restrictionCheck.allowsOrigin(application, origin)) {
      return originNotAllowed(origin);
    }
    if (application.allowedCidrs.length === 0) {
      return undefined;
    }
    const address = isGateway ? call.peer.address : addressOf(call.peer);
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
