import type { ReactNode } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { Explanation, Step } from "../../../src/contract/decisions/explain.js";
import { Badge } from "../ui/badge.js";
import { RuleSummary } from "../ui/grants.js";

interface StepsProps {
  readonly explanation: Explanation;
  readonly rules: readonly AccessRule[];
  readonly permission: string;
}

/** What is tried, in its order, and what became of it. */
export function Steps({ explanation, rules, permission }: StepsProps) {
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
