import HighlightedCode from "../../common/highlighted-code.js";

/** Elements that the page of the reference and its dialog share. */

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
