import type { ReactNode } from "react";
import { highlight } from "../site/highlight.js";

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
      <code>{toNodes(highlight(code, language))}</code>
    </pre>
  );
}

const token = /<span class="([^"]*)">|<\/span>|([^<]+)/g;
const entities: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
};

/** The highlighter returns HTML of nested spans, but the content security policy forbids inner HTML. */
function toNodes(html: string): ReactNode[] {
  const root: ReactNode[] = [];
  const open: { className: string; children: ReactNode[] }[] = [];
  for (const [tag, className, text] of html.matchAll(token)) {
    const siblings = open.at(-1)?.children ?? root;
    if (text !== undefined) {
      siblings.push(text.replaceAll(/&[#\w]+;/g, (entity) => entities[entity] ?? entity));
    } else if (tag === "</span>") {
      const closed = open.pop();
      const parent = open.at(-1)?.children ?? root;
      parent.push(
        <span key={parent.length} className={closed?.className}>
          {closed?.children}
        </span>,
      );
    } else {
      open.push({ className: className ?? "", children: [] });
    }
  }
  return root;
}
