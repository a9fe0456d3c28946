import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { Session } from "../../../gen/latchkey/v1/session_service_pb.js";
import type { DenialReason } from "../../../src/access/explain.js";

/** Whom a question is about, as far as it is known. */
export interface Subject {
  /** Absent where the person may not read it. */
  readonly application?: Pick<
    Application,
    "id" | "name" | "type" | "status" | "expiresAt" | "allowedOrigins" | "allowedCidrs"
  >;
  readonly session?: Pick<Session, "id" | "state" | "expiresAt">;
  readonly grants: {
    readonly permissions: readonly string[];
    readonly rules: readonly AccessRule[];
  };
}

/** The key of the person. */
export function subjectOfOwnKey(me: WhoAmIResponse): Subject {
  const { applicationId: id, name, type, allowedOrigins, allowedCidrs, sessionId, expiresAt } = me;
  const application = { id, name, type, status: "enabled", allowedOrigins, allowedCidrs };
  const state = me.authorized ? "authorized" : "unauthorized";
  return {
    application: sessionId === undefined && expiresAt ? { ...application, expiresAt } : application,
    ...(sessionId !== undefined && {
      session: { id: sessionId, state, ...(expiresAt && { expiresAt }) },
    }),
    grants: me,
  };
}

/** Why nothing is granted before a rule is even tried, if that is so. */
export function refusalOf(
  { application, session }: Subject,
  origin: string,
  now: number,
): DenialReason | undefined {
  if (hasEnded(application, now) || hasEnded(session, now)) {
    return "expired";
  }
  if (application?.status === "disabled") {
    return "disabled";
  }
  const origins = application?.allowedOrigins ?? [];
  if (origins.length > 0 && !origins.includes(origin)) {
    return "origin_not_allowed";
  }
  return session?.state === "unauthorized" ? "not_authorized" : undefined;
}

function hasEnded(it: Pick<Session, "expiresAt"> | undefined, now: number): boolean {
  return it?.expiresAt !== undefined && Number(it.expiresAt.seconds) * 1_000 <= now;
}

const reasonsOfRules: readonly string[] = ["permission_missing", "no_rule_matches"];

/** Whether something was denied before a rule was even tried. */
export function isBeforeRules(reason: string | undefined): boolean {
  return reason !== undefined && !reasonsOfRules.includes(reason);
}
