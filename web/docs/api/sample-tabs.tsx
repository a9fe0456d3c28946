import type { Sample } from "../../../src/contract/samples/samples.js";
import { highlight } from "../site/highlight.js";

/** The same program in several languages. The script of the page turns them into tabs. */
export function SampleTabs({ samples }: { readonly samples: readonly Sample[] }) {
  return (
    <div className="tabs">
      {samples.map(({ language, label, code }) => (
        <div key={language} className="code">
          <p className="code-label">{label}</p>
          <Code code={code} language={language === "curl" ? "bash" : language} />
        </div>
      ))}
    </div>
  );
}

/** Highlighted code. */
export function Code({ code, language }: { readonly code: string; readonly language: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <pre tabIndex={0}>
      {/* biome-ignore lint/security/noDangerouslySetInnerHtml: the highlighter escapes the code. */}
      <code dangerouslySetInnerHTML={{ __html: highlight(code, language) }} />
    </pre>
  );
}
