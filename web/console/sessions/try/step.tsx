import { type DescMessage, type DescMethodUnary, getOption } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { http } from "../../../../gen/google/api/annotations_pb.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../../../../src/contract/problems.js";
import { keyHeader } from "../../../common/key-header.js";
import { connect, serviceUrl } from "../../sign-in/connection.js";
import { useAccess } from "../../sign-in/signed-in-key.js";
import { Button, CopyButton } from "../../ui/buttons.js";
import { Badge } from "../../ui/display.js";
import { KeyField } from "../../ui/fields.js";
import { useAction } from "../../ui/hooks.js";
import { Problem } from "../../ui/page.js";

interface StepProps {
  readonly title: string;
  readonly description: ReactNode;
  readonly children: ReactNode;
  /** The label of the button to the next step. */
  readonly next?: string;
  /** Undefined until the step is done. */
  readonly onNext?: (() => void) | undefined;
  /** Whether the user came from another step. */
  readonly isArrival: boolean;
}

/** A step. Moves the focus to its title, for screen readers. */
export function Step({ title, description, children, next, onNext, isArrival }: StepProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only on mount.
  useEffect(() => {
    if (isArrival) {
      heading.current?.focus();
    }
  }, []);
  return (
    <section className="card step" aria-label={title}>
      <h2 ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <div className="step-description">{description}</div>
      {children}
      {onNext && next !== undefined && (
        <div className="actions">
          <Button tone="primary" onClick={onNext}>
            {next}
          </Button>
        </div>
      )}
    </section>
  );
}

interface CurlCommandProps {
  readonly method: DescMethodUnary<DescMessage, DescMessage>;
  /** The shell variable with the key. */
  readonly keyVariable: string;
  /** `$NONCE` becomes the shell variable. */
  readonly body?: object;
}

/** The call as a curl command. Secrets stay in variables. */
export function CurlCommand({ method, keyVariable, body }: CurlCommandProps) {
  const { pattern } = getOption(method, http);
  const verb = pattern.case?.toUpperCase();
  const command = [
    `curl -X ${verb} ${serviceUrl}${pattern.value}`,
    `-H "${keyHeader}: $${keyVariable}"`,
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${shellQuote(JSON.stringify(body))}`]),
  ].join(" \\\n  ");
  return (
    <div className="curl">
      <p className="hint">With curl</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard. */}
      <pre tabIndex={0}>{command}</pre>
      <CopyButton text={command} label="Copy command" />
      <p className="hint">
        See the{" "}
        <a href="/docs/api" target="_blank" rel="noreferrer">
          API reference
        </a>
        .
      </p>
    </div>
  );
}

/** Quotes text for the shell, except for the nonce variable. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''").replaceAll("$NONCE", `'"$NONCE"'`)}'`;
}

/** An expected error with its status. */
export function ExpectedError({ error }: { readonly error: unknown }) {
  if (error === undefined) {
    return null;
  }
  const { code } = problemOf(error);
  const known = code === undefined ? undefined : problemCatalogue[code as ProblemCode];
  return (
    <>
      {known && (
        <p>
          <Badge tone="danger">
            {known.status} {code}
          </Badge>
        </p>
      )}
      <Problem error={error} />
    </>
  );
}

interface KeyChoiceProps {
  /** The required application type. */
  readonly type: "public" | "private";
  readonly label: string;
  readonly demoKey?: string | undefined;
  /** Further fields. */
  readonly children?: ReactNode;
  readonly action: string;
  readonly isBlocked?: boolean;
  act(transport: Transport): Promise<void>;
}

/** Runs an action with the demo key, the own key if its type fits, or an entered key. */
export function KeyChoice(props: KeyChoiceProps) {
  const { type, label, demoKey, children, action, isBlocked = false, act } = props;
  const { me } = useAccess();
  const ownTransport = useTransport();
  const [key, setKey] = useState("");
  const isOwn = demoKey === undefined && me.kind === "application" && me.type === type;

  const { run, isBusy, problem } = useAction(async () => {
    const transport = isOwn ? ownTransport : connect({ key: demoKey ?? key });
    await act(transport);
  });

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!isBlocked) {
      void run();
    }
  }

  return (
    <form className="key-choice" onSubmit={submit}>
      {isOwn && <p className="hint">Uses your own key, which is a {type} key.</p>}
      {demoKey !== undefined && <p className="hint">Uses the key of the demo application.</p>}
      {!isOwn && demoKey === undefined && (
        <KeyField
          label={label}
          hint="Stays in memory and is sent only to this service."
          placeholder={type === "public" ? "lk_pub_…" : "lk_prv_…"}
          isRequired
          value={key}
          onChange={setKey}
        />
      )}
      {children}
      <Problem error={problem} />
      <div className="actions">
        <Button type="submit" tone="primary" isBusy={isBusy} disabled={isBlocked}>
          {action}
        </Button>
      </div>
    </form>
  );
}
