import { useState } from "react";
import { Page } from "../ui/page.js";
import { AuthorizeStep } from "./try/authorize-step.js";
import { Finish } from "./try/finish.js";
import { useFlow } from "./try/flow.js";
import { OnceStep } from "./try/once-step.js";
import { OpenStep } from "./try/open-step.js";
import { SessionCard } from "./try/session-card.js";
import { Stepper } from "./try/stepper.js";
import { TooEarlyStep } from "./try/too-early-step.js";
import { UseStep } from "./try/use-step.js";
import "./sessions.css";
import "./try/try.css";

const views = [OpenStep, TooEarlyStep, AuthorizeStep, UseStep, OnceStep];

/** The way of a session, step by step, with real calls. */
export default function TrySessionPage() {
  const [flow, change] = useFlow();
  const [first] = useState(flow.step);
  const [hasMoved, setHasMoved] = useState(false);
  const View = views[flow.step] ?? OpenStep;
  const { demo, session } = flow;
  return (
    <Page
      title="Try a session"
      actions={(demo || session) && <Finish flow={flow} change={change} />}
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
