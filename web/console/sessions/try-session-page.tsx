import { PartyPopper, RotateCcw, Timer, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { AuthorizeSessionRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { useRefresh } from "../ui/hooks.js";
import { Page, Problem } from "../ui/page.js";
import { toast } from "../ui/toast.js";
import { useFieldErrors } from "../validation/field-errors.js";
import { authorizeRequestOf, type Demo } from "./try/demo.js";
import { GrantOptions } from "./try/grant-options.js";
import { SessionCard } from "./try/session-card.js";
import { StepCard, StepForm } from "./try/step-card.js";
import { useDemo } from "./try/use-demo.js";

/** The lifecycle of a session, step by step, with real calls. */
export default function TrySessionPage() {
  const { demo, steps, current, runNext, runAll, stop, change, restart } = useDemo();
  const [first] = useState(current);
  const request = useMemo(() => authorizeRequestOf(demo), [demo]);
  const errors = useFieldErrors(AuthorizeSessionRequestSchema, request);
  const isGrantInvalid = Object.keys(errors).length > 0;
  const currentIndex = current === undefined ? steps.length : steps.indexOf(current);
  const isStarted = Object.keys(demo.results).length > 0 || demo.applications !== undefined;
  return (
    <Page
      title="Try a session"
      description="The guided demo of a session: a browser gets it, its backend authorizes it, and the browser uses it. Every call is real."
      actions={isStarted && <RestartButton demo={demo} restart={restart} />}
    >
      <div className="try">
        <div className="try-steps">
          <ol className="steps" aria-label="Steps">
            {steps.map((step, index) => (
              <StepCard
                key={step}
                step={step}
                number={index + 1}
                state={stateOf(index, currentIndex)}
                demo={demo}
                isLatest={index === currentIndex - 1}
              >
                {step === current && (
                  <StepForm
                    step={step}
                    demo={demo}
                    isBlocked={step === "authorize" && isGrantInvalid}
                    isArrival={step !== first}
                    onRun={runNext}
                    onRunAll={demo.usesOwnKeys ? undefined : runAll}
                    onStop={stop}
                  >
                    {step === "authorize" && (
                      <GrantOptions
                        grant={demo.grant}
                        errors={errors}
                        onChange={(grant) => change({ grant })}
                      />
                    )}
                  </StepForm>
                )}
              </StepCard>
            ))}
          </ol>
          {!isStarted && <OwnKeysToggle demo={demo} change={change} />}
          {current === undefined && <Finish demo={demo} restart={restart} />}
        </div>
        {demo.session && (
          <SessionCard
            key={demo.session.id}
            session={demo.session}
            isAuthorized={demo.isAuthorized}
          />
        )}
      </div>
    </Page>
  );
}

function stateOf(index: number, current: number): "done" | "current" | "waiting" {
  if (index === current) {
    return "current";
  }
  return index < current ? "done" : "waiting";
}

interface OwnKeysToggleProps {
  readonly demo: Demo;
  change(changed: Partial<Demo>): void;
}

/** Offers users who may create demo applications to use existing ones. */
function OwnKeysToggle({ demo: { usesOwnKeys }, change }: OwnKeysToggleProps) {
  const { may } = useSignedInKey();
  if (!may("application:create") || !may("application:delete")) {
    return null;
  }
  return (
    <div className="actions">
      <Button onClick={() => change({ usesOwnKeys: !usesOwnKeys })}>
        {usesOwnKeys ? "Create demo applications instead" : "Use keys of my own applications"}
      </Button>
    </div>
  );
}

interface EndProps {
  readonly demo: Demo;
  restart(): Promise<boolean>;
}

function Finish({ demo, restart }: EndProps) {
  const { may } = useSignedInKey();
  return (
    <section className="card finish" aria-label="Done">
      <h2>
        <PartyPopper size={18} aria-hidden /> That is the whole lifecycle
      </h2>
      <p className="muted">
        The session works until it expires or is revoked, and never has more permissions than its
        backend. To protect your own API, see the{" "}
        <a href="/docs#tutorials" target="_blank" rel="noreferrer">
          tutorials
        </a>
        .
      </p>
      <Problem error={demo.problem} />
      <div className="actions">
        {may("session:read") && (
          <ButtonLink
            tone="primary"
            icon={Timer}
            href={`/sessions?session=${demo.session?.id ?? ""}`}
          >
            See it in Sessions
          </ButtonLink>
        )}
        <RestartButton demo={demo} restart={restart} />
      </div>
    </section>
  );
}

/** Deletes the demo applications, with their sessions, and starts again. */
function RestartButton({ demo, restart }: EndProps) {
  const refresh = useRefresh();
  const hasApplications = demo.applications !== undefined;

  async function run(): Promise<void> {
    if ((await restart()) && hasApplications) {
      refresh();
      toast({ title: "Demo applications deleted" });
    }
  }

  return (
    <Button
      icon={hasApplications ? Trash2 : RotateCcw}
      disabled={demo.running !== undefined}
      onClick={run}
    >
      {hasApplications ? "Delete the demo applications" : "Start over"}
    </Button>
  );
}
