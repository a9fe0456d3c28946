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
  /** What happens here, and why. */
  readonly description: ReactNode;
  readonly children: ReactNode;
  /** What the button says that leads on. */
  readonly next?: string;
  /** Absent until the step is done. */
  readonly onNext?: (() => void) | undefined;
  /** Whether the person came here from another step. */
  readonly isArrival: boolean;
}

/** One step of the way. The focus goes to its title, so that nobody misses that it has come. */
export function Step({ title, description, children, next, onNext, isArrival }: StepProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the step comes.
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
      <div className="story">{description}</div>
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
  /** The name of the shell variable that holds the key. */
  readonly keyIn: string;
  /** What is sent, where `$NONCE` stands for the shell variable. */
  readonly body?: object;
}

/** The same call on a command line. Secrets stay in variables. */
export function CurlCommand({ method, keyIn, body }: CurlCommandProps) {
  const { pattern } = getOption(method, http);
  const verb = pattern.case?.toUpperCase();
  const command = [
    `curl -X ${verb} ${serviceUrl}${pattern.value}`,
    `-H "${keyHeader}: $${keyIn}"`,
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ].join(" \\\n  ");
  return (
    <div className="curl">
      <p className="hint">The same with curl</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reached by the keyboard. */}
      <pre tabIndex={0}>{command}</pre>
      <CopyButton text={command} label="Copy the command" />
      <p className="hint">
        Read on: “Sessions” in <code>docs/api.md</code>, or{" "}
        <a href="/docs" target="_blank" rel="noreferrer">
          the whole contract
        </a>
        .
      </p>
    </div>
  );
}

/** A text for the shell, which puts the nonce in. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''").replaceAll("$NONCE", `'"$NONCE"'`)}'`;
}

/** A refusal that was to be expected, with its status. Nothing where nothing was thrown. */
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
