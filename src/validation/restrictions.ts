import type { ApplicationType, Restrictions } from "../contract/grants.js";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest } from "../errors.js";
import { readNetwork } from "../lib/networks.js";
import { faultInOrigin } from "../lib/web-origin.js";

/** Refuses restrictions that an application of this type cannot have, or that could never be met. */
export function checkRestrictions(
  type: ApplicationType,
  { allowedOrigins, allowedCidrs }: Restrictions,
): void {
  const violations = [
    ...(type !== "public" && allowedOrigins.length > 0 ? [unsuitedOrigins(type)] : []),
    ...allowedOrigins.flatMap((origin, at) =>
      faultIn(`allowed_origins[${at}]`, origin, faultInOrigin),
    ),
    ...allowedCidrs.flatMap((cidr, at) => faultIn(`allowed_cidrs[${at}]`, cidr, ofNetwork)),
  ];
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
}

/** Refuses a quota of an application that opens no sessions. */
export function checkSessionQuota(type: ApplicationType, quota: number | undefined): void {
  if (type !== "public" && quota !== undefined) {
    const message = `cannot be given to a ${type} application, which opens no sessions: leave it out`;
    throw invalidRequest({ field: "session_quota", message });
  }
}

function unsuitedOrigins(type: ApplicationType): FieldViolation {
  return {
    field: "allowed_origins",
    message:
      `cannot be given to a ${type} application, whose keys no web page uses: ` +
      "limit it by allowed_cidrs",
  };
}

function faultIn(
  field: string,
  text: string,
  faultOf: (text: string) => string | undefined,
): FieldViolation[] {
  const message = faultOf(text);
  return message === undefined ? [] : [{ field, message }];
}

function ofNetwork(text: string): string | undefined {
  const network = readNetwork(text);
  return "fault" in network ? network.fault : undefined;
}
