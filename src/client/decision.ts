import { timestampDate, timestampMs } from "@bufbuild/protobuf/wkt";
import type { CheckAccessResponse, DecidedBy } from "../../gen/latchkey/v1/access_service_pb.js";

/** Whether a key has a permission, why, and how old this information may be. */
export interface Decision {
  readonly allowed: boolean;
  /** How much of the token may be shown: `redact`, `mask` or `reveal`. Absent if denied. */
  readonly transform?: string | undefined;
  /** The grant that decided. Absent if denied. */
  readonly decidedBy?: DecidedBy | undefined;
  /** The reason for a denial, or `unavailable` if the service did not respond. */
  readonly reason?: string | undefined;
  /** The reason for a denial, as a sentence. */
  readonly detail?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** The application that authorized the session. */
  readonly authorizedBy?: string | undefined;
  /** For a session: whether its own grants or those of its authorizer decided. */
  readonly limitedBy?: string | undefined;
  readonly expiresAt?: Date | undefined;
  /** Whether the decision is valid for this origin only. */
  readonly dependsOnOrigin?: boolean | undefined;
  /** Whether the decision is valid for this address only. */
  readonly dependsOnAddress?: boolean | undefined;
  /** Where the decision comes from. `guard` means that the guard denied the request by itself. */
  readonly source: "cache" | "service" | "guard";
  /**
   * Maximum age of the information, in milliseconds. The decision includes every
   * change that was acknowledged earlier than that.
   */
  readonly staleness: number;
}

export function toDecision(response: CheckAccessResponse): Decision {
  const { allowed, transform, decidedBy, reason, detail, applicationId, sessionId } = response;
  const { authorizedBy, limitedBy, dependsOnOrigin, dependsOnAddress } = response;
  return {
    allowed,
    transform,
    decidedBy,
    reason,
    detail,
    applicationId,
    sessionId,
    authorizedBy,
    limitedBy,
    dependsOnOrigin,
    dependsOnAddress,
    expiresAt: response.expiresAt && timestampDate(response.expiresAt),
    source: "service",
    staleness: 0,
  };
}

/** Milliseconds until the key expires, which changes the decision without an event. */
export function lifetimeOf({ reason, expiresAt, checkedAt }: CheckAccessResponse): number {
  if (!expiresAt || reason === "expired") {
    return Number.POSITIVE_INFINITY;
  }
  return checkedAt ? timestampMs(expiresAt) - timestampMs(checkedAt) : 0;
}
