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

/** Throws if a key may not be used from the origin or the address of the call. */
type AssertWithinRestrictions = (caller: Caller, call: Call) => void;

/** The origins and networks are those of the application, for its sessions too. */
export function createAssertWithinRestrictions(addressOf: AddressOf): AssertWithinRestrictions {
  const restrictionCheck = createRestrictionCheck();
  const accessFor = memoize<DescMethod, Access>(accessOf);

  function findProblem(application: ApplicationRecord, call: Call): Problem | undefined {
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
    const problem = isRestricted(application) ? findProblem(application, call) : undefined;
    if (problem) {
      throw problem;
    }
  };
}
