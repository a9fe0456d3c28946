import { type DescMessage, type DescMethodUnary, getOption } from "@bufbuild/protobuf";
import { type ReactNode, useEffect, useRef } from "react";
import { http } from "../../../../gen/google/api/annotations_pb.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../../../../src/contract/problems.js";
import { keyHeader } from "../../../common/key-header.js";
import { serviceUrl } from "../../access/connection.js";
import { Button, CopyButton } from "../../ui/buttons.js";
import { Badge } from "../../ui/display.js";
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
  readonly keyIn: string;
  /** `$NONCE` becomes the shell variable. */
  readonly body?: object;
}

/** The call as a curl command. Secrets stay in variables. */
export function CurlCommand({ method, keyIn, body }: CurlCommandProps) {
  const { pattern } = getOption(method, http);
  const verb = pattern.case?.toUpperCase();
  const command = [
    `curl -X ${verb} ${serviceUrl}${pattern.value}`,
    `-H "${keyHeader}: $${keyIn}"`,
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
        <a href="/docs" target="_blank" rel="noreferrer">
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
export function ExpectedError({ of: thrown }: { readonly of: unknown }) {
  if (thrown === undefined) {
    return null;
  }
  const { code } = problemOf(thrown);
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
      <Problem of={thrown} />
    </>
  );
}
