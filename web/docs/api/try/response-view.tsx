import { useState } from "react";
import { problemUri } from "../../../../src/contract/problems.js";
import { json, printValue, type SampleCall } from "../../../../src/contract/samples/call.js";
import { Code, Status } from "../elements.js";
import { CopyButton } from "./request-sample.js";

/** The response to a call, or why there is none. */
export type CallResult =
  | {
      readonly status: number;
      /** Milliseconds. */
      readonly duration: number;
      readonly headers: readonly (readonly [name: string, value: string])[];
      readonly text: string;
    }
  | { readonly failure: string };

export async function sendCall(call: SampleCall, key: string): Promise<CallResult> {
  const { method, path, keyHeader, headers, body, form } = call;
  if (!canBeSent([key, ...Object.values(headers ?? {})])) {
    return { failure: "The key or a header has characters that headers cannot contain." };
  }
  const start = performance.now();
  try {
    const response = await fetch(path, {
      method,
      headers: {
        ...headers,
        ...(keyHeader && key !== "" && { [keyHeader]: key }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      body: form ? new URLSearchParams(form) : body === undefined ? null : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
    });
    const text = await response.text();
    const duration = Math.round(performance.now() - start);
    return { status: response.status, duration, headers: [...response.headers], text };
  } catch {
    return { failure: "The service did not respond. Check that it is running, and try again." };
  }
}

/** Otherwise the browser reports the same error as for a service that does not respond. */
function canBeSent(values: readonly string[]): boolean {
  return values.every((value) => /^[\t -~]*$/.test(value));
}

const keyPattern = /\b(lk_(?:prv|pub|mgt|ses|non)_)[A-Za-z0-9]{61}\b/g;

export function ResponseView({ result }: { readonly result: CallResult | "pending" | undefined }) {
  return (
    <section className="card" aria-label="Response" aria-live="polite">
      <div className="card-title">
        Response
        {result && result !== "pending" && "status" in result && (
          <>
            <Status status={result.status} />
            <span className="type">{result.duration} ms</span>
            <CopyButton text={result.text} />
          </>
        )}
      </div>
      <ResponseContent result={result} />
    </section>
  );
}

function ResponseContent({ result }: { readonly result: CallResult | "pending" | undefined }) {
  const [showsKeys, setShowsKeys] = useState(false);
  if (result === undefined || result === "pending") {
    return <p className="no-body">{result ? "Waiting for the response…" : "Not sent yet."}</p>;
  }
  if ("failure" in result) {
    return (
      <p className="no-body try-error" role="alert">
        {result.failure}
      </p>
    );
  }
  const value = parseJson(result.text);
  const full = value === undefined ? result.text : printValue(value, json);
  const masked = full.replaceAll(keyPattern, "$1…");
  return (
    <>
      {result.status >= 400 && <ProblemNotice body={value} />}
      {full === "" ? (
        <p className="no-body">No body</p>
      ) : (
        <div className="code">
          <Code code={showsKeys ? full : masked} language="json" />
        </div>
      )}
      {masked !== full && (
        <button type="button" className="show-keys" onClick={() => setShowsKeys(!showsKeys)}>
          {showsKeys ? "Hide keys" : "Show keys"}
        </button>
      )}
      <details className="response-headers">
        <summary>{result.headers.length} headers</summary>
        <dl>
          {result.headers.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ProblemBody {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
}

/** The errors by field if the fields are known, with a link to the page of the error. */
function ProblemNotice({ body }: { readonly body: unknown }) {
  const { code, title, detail, errors } = (body ?? {}) as ProblemBody;
  return (
    code &&
    detail && (
      <div className="problem">
        {errors ? `${title}.` : detail}{" "}
        <a href={problemUri(encodeURIComponent(code))} target="_blank" rel="noreferrer">
          About <code>{code}</code>
        </a>
        {errors && (
          <ul>
            {Object.entries(errors).map(([field, messages]) => (
              <li key={field}>
                <code>{field}</code> {messages.join("; ")}
              </li>
            ))}
          </ul>
        )}
      </div>
    )
  );
}
