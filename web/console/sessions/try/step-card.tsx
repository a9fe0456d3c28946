import {
  ArrowRight,
  Check,
  FastForward,
  type LucideIcon,
  Monitor,
  Server,
  Square,
  User,
} from "lucide-react";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useSignedInKey } from "../../sign-in/signed-in-key.js";
import { Button } from "../../ui/buttons.js";
import { Badge, Notice } from "../../ui/display.js";
import { KeyField } from "../../ui/fields.js";
import { Problem } from "../../ui/page.js";
import type { Demo, StepId, StepResult } from "./demo.js";
import { ExchangeView } from "./exchange.js";

type Actor = "You" | "Browser" | "Backend";

interface StepText {
  readonly actor: Actor;
  readonly title: string;
  readonly explanation: string;
  readonly action: string;
  /** The result, if the service responded as expected. */
  readonly outcome: string;
  /** Whose key the calls use. */
  readonly sender: string;
  /** The type of application whose key the user can enter. */
  readonly keyType?: "public" | "private";
}

const stepTexts: Readonly<Record<StepId, StepText>> = {
  create: {
    actor: "You",
    title: "Create two applications",
    explanation:
      "A shop that runs in browsers gets a public key, its backend a private one. Both expire after an hour.",
    action: "Create demo applications",
    outcome: "Demo shop and Demo backend are ready. Their keys stay in this page.",
    sender: "your key",
  },
  open: {
    actor: "Browser",
    title: "Open a session",
    explanation:
      "The shop's page opens a session with its public key, which anyone can read in the page.",
    action: "Open a session",
    outcome:
      "The session is open, without permissions. The browser keeps the session key and sends the nonce to its backend.",
    sender: "the public key of the shop",
    keyType: "public",
  },
  early: {
    actor: "Browser",
    title: "Use the session too early",
    explanation: "The browser tries its session key before the backend has authorized it.",
    action: "Use the session key",
    outcome: "Refused, as expected: the session is not authorized yet.",
    sender: "the session key",
  },
  authorize: {
    actor: "Backend",
    title: "Authorize the session",
    explanation:
      "The backend has signed in the user. With the nonce and its private key it grants permissions, at most its own.",
    action: "Authorize the session",
    outcome: "The session is authorized, and its nonce is used up.",
    sender: "the private key of the backend",
    keyType: "private",
  },
  use: {
    actor: "Browser",
    title: "Use the session",
    explanation: "The browser sends the same session key again.",
    action: "Use the session key again",
    outcome: "Allowed: the session now has the permissions that the backend granted.",
    sender: "the session key",
  },
  reuse: {
    actor: "Backend",
    title: "Use the nonce again",
    explanation: "Someone found the nonce, for example in a log, and tries to use it once more.",
    action: "Use the nonce again",
    outcome: "Refused, as expected: a nonce works only once.",
    sender: "the private key of the backend",
  },
};

const actorIcons: Readonly<Record<Actor, LucideIcon>> = {
  You: User,
  Browser: Monitor,
  Backend: Server,
};

interface StepCardProps {
  readonly step: StepId;
  readonly number: number;
  readonly state: "done" | "current" | "waiting";
  readonly demo: Demo;
  /** Whether its calls are shown from the start. */
  readonly isLatest: boolean;
  /** The form of the current step. */
  readonly children?: ReactNode;
}

/** One step: its explanation, its form while it is current, and its calls afterwards. */
export function StepCard({ step, number, state, demo, isLatest, children }: StepCardProps) {
  const { actor, title, explanation, outcome, sender } = stepTexts[step];
  const Icon = actorIcons[actor];
  const result = demo.results[step];
  return (
    <li className="step" data-state={state} aria-current={state === "current" ? "step" : undefined}>
      <span className="step-marker" aria-hidden>
        {state === "done" ? <Check size={14} /> : number}
      </span>
      <section className="step-body" aria-label={title}>
        <header className="step-header">
          <h2>{title}</h2>
          {state === "done" && <span className="visually-hidden">Done</span>}
          <Badge>
            <Icon size={12} aria-hidden /> {actor}
          </Badge>
        </header>
        {state !== "waiting" && <p className="muted">{explanation}</p>}
        {result && <Outcome result={result} expected={outcome} />}
        {result && (
          <details className="step-calls" open={isLatest}>
            <summary>
              {result.exchanges.length === 1 ? "Call and response" : "Calls and responses"}
            </summary>
            {result.exchanges.map((exchange, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the calls of a result never change.
              <ExchangeView key={index} exchange={exchange} sender={sender} />
            ))}
          </details>
        )}
        {children}
      </section>
    </li>
  );
}

interface OutcomeProps {
  readonly result: StepResult;
  readonly expected: string;
}

function Outcome({ result: { isExpected, exchanges }, expected }: OutcomeProps) {
  if (isExpected) {
    return (
      <p className="step-outcome" role="status">
        <Check size={16} aria-hidden /> {expected}
      </p>
    );
  }
  const refused = exchanges.find(({ status }) => status >= 400)?.response;
  const { detail = "The response is not the expected one." } = (refused ?? {}) as {
    readonly detail?: string;
  };
  return (
    <Notice tone="danger" role="alert">
      <p>{detail}</p>
    </Notice>
  );
}

interface StepFormProps {
  readonly step: StepId;
  readonly demo: Demo;
  readonly isBlocked: boolean;
  /** Whether the user came from another step. */
  readonly isArrival: boolean;
  readonly children?: ReactNode;
  onRun(key: string | undefined): void;
  /** Absent if the user must enter keys. */
  readonly onRunAll?: (() => void) | undefined;
  onStop(): void;
}

/** Runs the current step. Takes the focus, so that Enter runs step after step. */
export function StepForm(props: StepFormProps) {
  const { step, demo, isBlocked, isArrival, children, onRun, onRunAll, onStop } = props;
  const isBusy = demo.running !== undefined;
  const { action, keyType } = stepTexts[step];
  const { me } = useSignedInKey();
  const [key, setKey] = useState("");
  const button = useRef<HTMLDivElement>(null);
  const hasFittingKey = me.kind === "application" && me.type === keyType;
  const needsKey = demo.usesOwnKeys && keyType !== undefined && !hasFittingKey;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a busy button cannot have the focus.
  useEffect(() => {
    if (isArrival) {
      // While all steps run, this is Stop.
      button.current?.querySelector<HTMLElement>("button:enabled")?.focus();
    }
  }, [isArrival, isBusy]);

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isBlocked) {
      onRun(needsKey ? key : undefined);
    }
  }

  return (
    <form className="step-form" onSubmit={submit}>
      {needsKey && (
        <KeyField
          label={keyType === "public" ? "Public key" : "Private key"}
          hint="Stays in memory and is sent only to this service."
          placeholder={keyType === "public" ? "lk_pub_…" : "lk_prv_…"}
          isRequired
          value={key}
          onChange={setKey}
        />
      )}
      {children}
      <Problem error={demo.problem} />
      <div className="actions" ref={button}>
        <Button type="submit" tone="primary" icon={ArrowRight} isBusy={isBusy} disabled={isBlocked}>
          {action}
        </Button>
        {onRunAll && (
          <Button
            tone="quiet"
            icon={demo.isRunningAll ? Square : FastForward}
            disabled={isBusy && !demo.isRunningAll}
            onClick={demo.isRunningAll ? onStop : onRunAll}
          >
            {demo.isRunningAll ? "Stop" : "Run all steps"}
          </Button>
        )}
      </div>
    </form>
  );
}
