import type { ApplicationType, Restrictions } from "../contract/grants.js";
import type { FieldViolation } from "../contract/problems.js";
import { parseNetwork } from "../lib/networks.js";
import { findOriginProblem } from "../lib/web-origin.js";

/** Finds restrictions that an application of this type cannot have, or that are invalid. */
export function findRestrictionViolations(
  type: ApplicationType,
  { allowedOrigins, allowedCidrs }: Restrictions,
): FieldViolation[] {
  return [
    ...(type !== "public" && allowedOrigins.length > 0 ? [disallowedOrigins(type)] : []),
    ...allowedOrigins.flatMap((origin, index) =>
      toViolations(`allowed_origins[${index}]`, findOriginProblem(origin), "string.web_origin"),
    ),
    ...allowedCidrs.flatMap((cidr, index) =>
      toViolations(`allowed_cidrs[${index}]`, findNetworkProblem(cidr), "string.network"),
    ),
  ];
}

/** Finds a session quota of an application that cannot open sessions. */
export function findQuotaViolations(
  type: ApplicationType,
  quota: number | undefined,
): FieldViolation[] {
  if (type === "public" || quota === undefined) {
    return [];
  }
  const message = `is only for public applications: a ${type} application opens no sessions. Remove it`;
  return [{ field: "session_quota", message, code: "application.type" }];
}

function disallowedOrigins(type: ApplicationType): FieldViolation {
  return {
    field: "allowed_origins",
    message: `is only for public applications: use allowed_cidrs for a ${type} application`,
    code: "application.type",
  };
}

function toViolations(field: string, message: string | undefined, code: string): FieldViolation[] {
  return message === undefined ? [] : [{ field, message, code }];
}

function findNetworkProblem(text: string): string | undefined {
  const network = parseNetwork(text);
  return "problem" in network ? network.problem : undefined;
}
