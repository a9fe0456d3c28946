import type { ReactNode } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type {
  CheckAccessRequest,
  CheckAccessResponse,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Decision, stricterOf } from "../../../src/contract/decisions/decide.js";
import {
  type DenialReason,
  type Explanation,
  explainDenial,
  explainRules,
  type Step,
} from "../../../src/contract/decisions/explain.js";
import { isOwnPermission } from "../../../src/contract/methods.js";
import { RuleSummary } from "../rules/grants.js";
import { Badge } from "../ui/display.js";
import { useNow } from "../ui/time.js";
import { SampleToken } from "./sample-token.js";
import { denialBeforeRules, isDeniedBeforeRules, type Subject } from "./subject.js";

interface DecisionDetailsProps {
  readonly request: CheckAccessRequest;
  readonly subject: Subject;
  /** What the service says of the key, which then counts. */
  readonly told?: CheckAccessResponse;
}

/** What comes of a question, and how. */
export function DecisionDetails({ request, subject, told }: DecisionDetailsProps) {
  const now = useNow();
  const { permission, token } = request;
  const ownPermission = isOwnPermission(permission);
  const asked = { permission, token, ownPermission };
  const own = explainRules(subject.grants, asked);
  const limits = subject.authorizer?.grants;
  const byAuthorizer = limits && explainRules(limits, asked);
  const refusal = denialBeforeRules(subject, request, now);
  const decisions = { own: own.decision, byAuthorizer: byAuthorizer?.decision };
  const decision = told ?? previewDecision(subject, request, decisions, refusal);
  return (
    <>
      <SubjectName subject={subject} />
      <DecisionSummary decision={decision} />
      {!told && <Caveats subject={subject} />}
      <section className="card" aria-label="How it comes about">
        <h3>How it comes about</h3>
        {isDeniedBeforeRules(decision.reason) && (
          <p className="muted">
            The rules are not even tried. If the key were let in, it would go on so:
          </p>
        )}
        {limits && <h4>What the session was granted</h4>}
        <Steps explanation={own} rules={subject.grants.rules} permission={permission} />
        {limits && byAuthorizer && (
          <>
            <h4>What {subject.authorizer?.application?.name ?? "its authorizer"} is granted now</h4>
            <p className="muted">
              The session may do only what both allow, and sees what both show.
            </p>
            <Steps explanation={byAuthorizer} rules={limits.rules} permission={permission} />
          </>
        )}
      </section>
      <SampleForDecision decision={decision} />
    </>
  );
}

/** Whom the answer is about. */
function SubjectName({ subject: { application, session } }: { readonly subject: Subject }) {
  const name = application?.name ?? "an application";
  return (
    <h2 className="why-subject">
      {session ? `A session of ${name}` : name}
      {application && <Badge>{application.type}</Badge>}
    </h2>
  );
}

/** How much of a token the judgement shows. */
export function SampleForDecision({ decision }: { readonly decision: AccessDecision }) {
  return <SampleToken transform={decision.allowed ? decision.transform : undefined} />;
}

/** What cannot be told without the key. */
function Caveats({ subject: { application, authorizer } }: { readonly subject: Subject }) {
  return (
    <>
      {!application && (
        <p className="hint">
          Whether its application is disabled, and from where its keys may be used, is told to keys
          with application:read.
        </p>
      )}
      {authorizer && !authorizer.grants && (
        <p className="hint">
          The session may do only what the application that authorized it may do too. What that is,
          is told to keys with application:read.
        </p>
      )}
    </>
  );
}

/** What was decided, by the service or as it would. */
type AccessDecision = Pick<CheckAccessResponse, "allowed"> & {
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
export function DecisionSummary({ decision }: { readonly decision: AccessDecision }) {
  const { allowed, transform, decidedBy, reason = "", detail, limitedBy } = decision;
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

interface StepsProps {
  readonly explanation: Explanation;
  readonly rules: readonly AccessRule[];
  readonly permission: string;
}

/** What is tried, in its order, and what became of it. */
function Steps({ explanation, rules, permission }: StepsProps) {
  return (
    <ol className="why-steps" aria-label="What is tried, in this order">
      {explanation.rules.map((step) => (
        <StepItem key={step.place} step={step}>
          <RuleSummary rule={rules[step.place] as AccessRule} />
        </StepItem>
      ))}
      <StepItem step={explanation.bare}>
        <p>
          At last, <code>{permission}</code> on everything
        </p>
      </StepItem>
    </ol>
  );
}

const outcomes = {
  decides: ["Decides", "good"],
  does_not_match: ["Does not match", "plain"],
  not_reached: ["Not reached", "plain"],
} as const;

function StepItem({ step, children }: { readonly step: Step; readonly children: ReactNode }) {
  const [label, tone] = outcomes[step.outcome];
  return (
    <li data-outcome={step.outcome}>
      <p className="why-outcome">
        <Badge tone={tone}>{label}</Badge>
        <span>{step.outcome === "not_reached" ? "" : step.why.join(" · ")}</span>
      </p>
      {children}
    </li>
  );
}

/** What the subject's own grants say, and what those of its authorizer say, where they limit it. */
interface Decisions {
  readonly own: Decision;
  readonly byAuthorizer?: Decision | undefined;
}

/** What the service would say of a key of the subject, in its words. */
function previewDecision(
  { application, session, authorizer }: Subject,
  request: CheckAccessRequest,
  { own, byAuthorizer }: Decisions,
  refusal: DenialReason | undefined,
): AccessDecision {
  const met = byAuthorizer && stricterOf(own, byAuthorizer);
  const decision = met?.decision ?? own;
  const reason = refusal ?? (decision.allowed ? undefined : decision.reason);
  const limitedBy = refusal ? undefined : met?.limitedBy;
  if (reason === undefined) {
    return { ...decision, limitedBy };
  }
  const by = authorizer?.application;
  const subject = application && {
    application,
    session,
    authorizer: by && { ...by, disabled: by.status === "disabled" },
  };
  const detail = subject && explainDenial({ reason, limitedBy }, subject, request);
  return { allowed: false, reason, limitedBy, ...(detail !== undefined && { detail }) };
}
