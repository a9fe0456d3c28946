import { useState } from "react";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import { Button } from "../ui/buttons.js";
import { useAction } from "../ui/hooks.js";
import { Page, Problem } from "../ui/page.js";
import { AuthorizeStep } from "./try/authorize-step.js";
import { removeDemoApplications, type StepViewProps, steps, useFlow } from "./try/flow.js";
import { SessionCard } from "./try/session-card.js";
import { NonceReuseStep, OpenStep, UnauthorizedStep, UseStep } from "./try/steps.js";
import "./sessions.css";
import "./try/try.css";

const views = [OpenStep, UnauthorizedStep, AuthorizeStep, UseStep, NonceReuseStep];

/** The lifecycle of a session, step by step, with real calls. */
export default function TrySessionPage() {
  const [flow, change] = useFlow();
  const [first] = useState(flow.step);
  const [hasMoved, setHasMoved] = useState(false);
  const View = views[flow.step] ?? OpenStep;
  const { demo, session } = flow;
  return (
    <Page
      title="Try a session"
      actions={(demo || session) && <ResetButton flow={flow} change={change} />}
    >
      <Stepper step={flow.step} />
      <div className="try">
        <View
          key={flow.step}
          flow={flow}
          isArrival={hasMoved || flow.step !== first}
          change={(changed) => {
            setHasMoved(true);
            change(changed);
          }}
        />
        {session && <SessionCard key={session.id} session={session} />}
      </div>
    </Page>
  );
}

function Stepper({ step }: { readonly step: number }) {
  return (
    <ol className="stepper" aria-label="Steps">
      {steps.map((title, index) => (
        <li key={title} aria-current={index === step ? "step" : undefined} data-done={index < step}>
          <span className="step-number" aria-hidden="true">
            {index < step ? "✓" : index + 1}
          </span>
          {title}
          {index < step && <span className="visually-hidden">, done</span>}
        </li>
      ))}
    </ol>
  );
}

/** Removes the demo applications and starts again. */
function ResetButton({ flow, change }: Pick<StepViewProps, "flow" | "change">) {
  const applications = useClient(ApplicationService);
  const { run, isBusy, problem } = useAction(async () => {
    if (flow.demo) {
      await removeDemoApplications(applications, flow.demo);
    }
    change({ step: 0, demo: undefined, session: undefined, backend: undefined });
  });
  return (
    <>
      <Problem error={problem} />
      <Button isBusy={isBusy} onClick={run}>
        {flow.demo ? "Remove the demo and start over" : "Start over"}
      </Button>
    </>
  );
}
