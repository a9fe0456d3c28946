import type { Sample } from "../../../src/contract/samples/samples.js";
import HighlightedCode from "../../common/highlighted-code.js";

/** Elements that several pages or the dialog of the reference share. */

export function MethodBadge({ method }: { readonly method: string }) {
  return <span className={`method ${method.toLowerCase()}`}>{method}</span>;
}

export function Status({ status }: { readonly status: number | string }) {
  return <span className={`status ${Number(status) < 400 ? "good" : "bad"}`}>{status}</span>;
}

/** Highlighted code. */
export function Code({ code, language }: { readonly code: string; readonly language: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <pre tabIndex={0}>
      <code>
        <HighlightedCode code={code} language={language} />
      </code>
    </pre>
  );
}

/** The same program in several languages. The script of the page turns them into tabs. */
export function SampleTabs({ samples }: { readonly samples: readonly Sample[] }) {
  return (
    <div className="tabs">
      {samples.map(({ language, label, code }) => (
        <div key={language} className="code">
          <p className="code-label">{label}</p>
          <Code code={code} language={language} />
        </div>
      ))}
    </div>
  );
}
