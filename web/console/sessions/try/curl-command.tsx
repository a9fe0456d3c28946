import { type DescMessage, type DescMethodUnary, getOption } from "@bufbuild/protobuf";
import { http } from "../../../../gen/google/api/annotations_pb.js";
import { keyHeader } from "../../../common/key-header.js";
import { serviceUrl } from "../../access/connection.js";
import { CopyButton } from "../../ui/copy-button.js";

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
        See “Sessions” in <code>docs/reference/api.md</code>, or{" "}
        <a href="/docs" target="_blank" rel="noreferrer">
          the API reference
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
