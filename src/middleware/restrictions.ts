import { callKey } from "../auth/caller.js";
import type { AddressOf } from "../auth/caller-address.js";
import { createRestrictionCheck } from "../contract/decisions/restrictions.js";
import { isRestricted } from "../contract/grants.js";
import { addressNotAllowed, originNotAllowed, type Problem } from "../errors.js";
import type { ApplicationRecord } from "../store/port/records.js";
import type { Interceptor } from "./interceptor.js";

type Request = Parameters<ReturnType<Interceptor>>[0];

/** Enforces the allowed origins and networks of a key. A session inherits the restrictions of its application. */
export function createRestrictionsInterceptor(addressOf: AddressOf): Interceptor {
  const restrictionCheck = createRestrictionCheck();

  function refuse(application: ApplicationRecord, request: Request): Problem | undefined {
    const origin = request.header.get("origin") ?? undefined;
    if (!restrictionCheck.allowsOrigin(application, origin)) {
      return originNotAllowed(origin);
    }
    if (application.allowedCidrs.length === 0) {
      return undefined;
    }
    const address = addressOf({ values: request.contextValues });
    return restrictionCheck.allowsAddress(application, address)
      ? undefined
      : addressNotAllowed(address);
  }

  return (next) => (request) => {
    const { caller } = request.contextValues.get(callKey);
    const refusal =
      caller && isRestricted(caller.application) ? refuse(caller.application, request) : undefined;
    if (refusal) {
      throw refusal;
    }
    return next(request);
  };
}
