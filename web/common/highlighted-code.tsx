import type { ReactNode } from "react";
import { highlight } from "./highlight.js";

interface HighlightedCodeProps {
  readonly code: string;
  readonly language: string;
}

/** Code with syntax highlighting. */
export default function HighlightedCode({ code, language }: HighlightedCodeProps) {
  return toNodes(highlight(code, language));
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
