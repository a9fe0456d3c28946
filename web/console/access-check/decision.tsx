import { CircleCheck, CircleX } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type {
  CheckAccessRequest,
  CheckAccessResponse,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  type Explanation,
  explainRules,
  type Step,
} from "../../../src/contract/decisions/explain.js";
import { isOwnPermission } from "../../../src/contract/methods.js";
import { inWords } from "../../common/words.js";
import { TypeBadge } from "../applications/application-display.js";
import { RuleSummary } from "../rules/grants.js";
import { SessionStateBadge } from "../sessions/session-display.js";
import { Badge, Card, DescriptionList, Notice } from "../ui/display.js";
import { TextField } from "../ui/fields.js";
import { useNow } from "../ui/time.js";
import {
  type AccessDecision,
  type DecidedBy,
  type GrantDecision,
  isDeniedBeforeRules,
  previewDecision,
} from "./preview-decision.js";
import type { Principal } from "./principal.js";

interface DecisionDetailsProps {
  readonly request: CheckAccessRequest;
  readonly principal: Principal;
  /** The decision of the service. Without it, the console computes a preview. */
  readonly actual?: CheckAccessResponse;
}

/** A decision and its evaluation. */
export function DecisionDetails({ request, principal, actual }: DecisionDetailsProps) {
  const now = useNow();
  const { permission, token } = request;
  const ownPermission = isOwnPermission(permission);
  const query = { permission, token, ownPermission };
  const own = explainRules(principal.grants, query);
  const limits = principal.authorizer?.grants;
  const byAuthorizer = limits && explainRules(limits, query);
  const decisions = { own: own.decision, byAuthorizer: byAuthorizer?.decision };
  const decision = actual ?? previewDecision(principal, request, decisions, now);
  return (
    <>
      <PrincipalName principal={principal} />
      <DecisionSummary decision={decision} permission={permission} />
      <MissingSource reason={decision.reason} request={request} />
      {!actual && <Caveats principal={principal} />}
      <Card label="Evaluation">
        {isDeniedBeforeRules(decision.reason) && (
          <p className="muted">
            The key is refused before its rules are evaluated. Otherwise, the result would be:
          </p>
        )}
        {limits && <h3>Permissions of the session</h3>}
        <Steps
          explanation={own}
          rules={principal.grants.rules}
          isDeciding={decision.limitedBy !== "authorizer"}
        />
        {limits && byAuthorizer && (
          <>
            <h3>
              Current permissions of {principal.authorizer?.application?.name ?? "the authorizer"}
            </h3>
            <Steps
              explanation={byAuthorizer}
              rules={limits.rules}
              isDeciding={decision.limitedBy === "authorizer"}
            />
          </>
        )}
      </Card>
      <SampleToken decision={decision} permission={permission} />
    </>
  );
}

function PrincipalName({ principal: { application, session } }: { readonly principal: Principal }) {
  const name = application?.name ?? "an application";
  return (
    <h2 className="access-check-principal">
      {session ? `A session of ${name}` : name}
      {session ? (
        <SessionStateBadge state={session.state} />
      ) : (
        application && <TypeBadge type={application.type} />
      )}
    </h2>
  );
}

interface MissingSourceProps {
  readonly reason: string | undefined;
  readonly request: Pick<CheckAccessRequest, "origin" | "address">;
}

/** A restricted key is denied while the source of the request is not given. */
function MissingSource({ reason, request: { origin, address } }: MissingSourceProps) {
  const field =
    reason === "address_not_allowed" && address === undefined
      ? "Address"
      : reason === "origin_not_allowed" && origin === undefined
        ? "Origin"
        : undefined;
  return field === undefined ? null : (
    <p className="hint">
      Fill in <strong>{field}</strong> to see the decision for a request from there.
    </p>
  );
}

/** Limits of the preview. */
function Caveats({ principal: { application, authorizer } }: { readonly principal: Principal }) {
  return (
    <>
      {!application && (
        <p className="hint">
          The status and the restrictions of its application are not checked. Your key needs the
          permission <code>application:read</code>.
        </p>
      )}
      {authorizer && !authorizer.grants && (
        <p className="hint">
          The application that authorized the session limits it. This limit is not checked. Your key
          needs the permission <code>application:read</code>.
        </p>
      )}
    </>
  );
}

interface DecisionProps {
  readonly decision: AccessDecision;
  readonly permission: string;
}

/** The result, and for a session what each side allows. */
export function DecisionSummary({ decision, permission }: DecisionProps) {
  const { allowed, decidedBy, detail } = decision;
  const Icon = allowed ? CircleCheck : CircleX;
  return (
    <>
      <Notice role="status" tone={allowed ? "good" : "danger"}>
        <p className="access-check-result">
          <Icon size={16} aria-hidden />
          <strong>{describeResult(decision, permission)}</strong>
        </p>
        <p>{allowed && decidedBy ? `Decided by ${describeGrant(decidedBy)}.` : detail}</p>
      </Notice>
      <BothSides decision={decision} permission={permission} />
    </>
  );
}

/** The decisions by the session and by its authorizer, and the one that limits the result. */
function BothSides({ decision, permission }: DecisionProps) {
  const { bySession, byAuthorizer, limitedBy } = decision;
  if (!bySession || !byAuthorizer) {
    return null;
  }
  const isEqual =
    bySession.allowed === byAuthorizer.allowed && bySession.transform === byAuthorizer.transform;
  const sides = [
    { id: "session", name: "Session", by: bySession },
    { id: "authorizer", name: "Authorizer", by: byAuthorizer },
  ];
  return (
    <Card label="What limits the result">
      <p className="muted">
        {isEqual
          ? `The session and its authorizer both ${bySession.allowed ? "allow the same" : "deny it"}.`
          : limitedBy === "authorizer"
            ? "The application that authorized the session limits it."
            : "The permissions of the session decide. Its authorizer allows more."}
      </p>
      <DescriptionList
        items={sides.map(({ id, name, by }) => [
          name,
          <span key={id} className="access-check-side">
            {describeResult(by, permission)}
            {by.decidedBy && <span className="muted">by {describeGrant(by.decidedBy)}</span>}
            {!isEqual && id === limitedBy && <Badge tone="accent">Limits the result</Badge>}
          </span>,
        ])}
      />
    </Card>
  );
}

function describeResult(
  { allowed, transform, reason = "" }: GrantDecision,
  permission: string,
): string {
  if (!allowed) {
    return `Denied: ${inWords(reason)}`;
  }
  return isOwnPermission(permission) ? "Allowed" : `Allowed (${transform})`;
}

function describeGrant({ rule, permission }: DecidedBy): string {
  if (!rule) {
    return `the direct permission ${permission}`;
  }
  const name = rule.description ? ` (“${rule.description}”)` : "";
  return `the rule with priority ${rule.priority}${name}`;
}

interface StepsProps {
  readonly explanation: Explanation;
  readonly rules: readonly AccessRule[];
  /** Whether these grants decide, and not those of the other side of a session. */
  readonly isDeciding: boolean;
}

/** The evaluated rules in order, with their results. */
function Steps({ explanation, rules, isDeciding }: StepsProps) {
  return (
    <ol className="access-check-steps" aria-label="Evaluation order">
      {explanation.rules.map((step) => (
        <StepItem key={step.index} step={step} isDeciding={isDeciding}>
          <RuleSummary rule={rules[step.index] as AccessRule} />
        </StepItem>
      ))}
      <StepItem step={explanation.direct} isDeciding={isDeciding}>
        <p className="muted">Direct permissions, after all rules</p>
      </StepItem>
    </ol>
  );
}

const outcomes = {
  decides: "Decides",
  does_not_match: "Does not match",
  not_reached: "Not reached",
} as const;

interface StepItemProps extends Pick<StepsProps, "isDeciding"> {
  readonly step: Step;
  readonly children: ReactNode;
}

function StepItem({ step, isDeciding, children }: StepItemProps) {
  const isMatch = step.outcome === "decides";
  const label = isMatch && !isDeciding ? "Matches" : outcomes[step.outcome];
  return (
    <li data-outcome={step.outcome}>
      <p className="access-check-outcome">
        <Badge tone={isMatch ? "good" : "plain"}>{label}</Badge>
        <span>{step.outcome === "not_reached" ? "" : step.reasons.join(" · ")}</span>
      </p>
      {children}
    </li>
  );
}

/** Applies the transform of a decision to a sample value. Latchkey's own permissions concern no token. */
export function SampleToken({ decision, permission }: DecisionProps) {
  const [plain, setPlain] = useState("4242 4242 4242 4242");
  const [mask, setMask] = useState("•••• 4242");
  const { allowed, transform = "" } = decision;
  if (!allowed || isOwnPermission(permission)) {
    return null;
  }
  const shown = applyTransform(transform, plain, mask);
  return (
    <Card label="Sample">
      <div className="access-check-pair">
        <TextField label="Token value" value={plain} onChange={setPlain} />
        <TextField label="Mask" value={mask} onChange={setMask} />
      </div>
      <p className="access-check-shown">
        {transform} → <output>{shown === "" ? "nothing" : <code>{shown}</code>}</output>
      </p>
    </Card>
  );
}

/** Without a mask, `mask` shows nothing. */
function applyTransform(transform: string, plain: string, mask: string): string {
  switch (transform) {
    case "reveal":
      return plain;
    case "mask":
      return mask;
    default:
      return "";
  }
}
