import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { CheckAccessResponse } from "../../../gen/latchkey/v1/access_service_pb.js";

/** What was decided, by the service or as it would. */
export type Judgement = Pick<CheckAccessResponse, "allowed"> & {
  readonly transform?: string | undefined;
  readonly decidedBy?: DecidedBy | undefined;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly limitedBy?: string | undefined;
};

interface DecidedBy {
  readonly rule?: Pick<AccessRule, "priority" | "description"> | undefined;
  readonly permission?: string | undefined;
}

/** What was decided, in a sentence. */
export function Verdict({ judgement }: { readonly judgement: Judgement }) {
  const { allowed, transform, decidedBy, reason = "", detail, limitedBy } = judgement;
  return (
    <div role="status" className="notice" data-tone={allowed ? "good" : "danger"}>
      <p>
        <strong>
          {allowed ? `Allowed, ${transform}` : `Denied: ${reason.replaceAll("_", " ")}`}
        </strong>
      </p>
      <p>{allowed && decidedBy ? `${grantInWords(decidedBy)} decides.` : detail}</p>
      {limitedBy === "authorizer" && <p>The application that authorized the session limits it.</p>}
    </div>
  );
}

function grantInWords({ rule, permission }: DecidedBy): string {
  if (!rule) {
    return `The permission ${permission} on everything`;
  }
  const name = rule.description ? `, “${rule.description}”,` : "";
  return `The rule of priority ${rule.priority}${name}`;
}
