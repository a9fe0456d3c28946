import type { ReactNode } from "react";
import type { Plugin, System } from "swagger-ui-dist/swagger-ui-es-bundle.js";

interface MarkdownProps {
  readonly source?: string;
  readonly className?: string;
}

/**
 * Shows the little Markdown of our descriptions: paragraphs, lists, `code` and
 * **strong**. Swagger UI would make HTML of it, as a text, which the policy of
 * the page forbids.
 */
export const plainMarkdown: Plugin = ({ React: { createElement } }) => ({
  wrapComponents: {
    Markdown:
      () =>
      ({ source = "", className = "" }: MarkdownProps) =>
        source &&
        createElement(
          "div",
          { className: `markdown ${className}` },
          ...source.split("\n\n").map((block) => showBlock(createElement, block)),
        ),
  },
});

type CreateElement = System["React"]["createElement"];

function showBlock(createElement: CreateElement, block: string): ReactNode {
  if (!block.startsWith("- ")) {
    return createElement("p", null, ...showMarks(createElement, block));
  }
  const items = block.split("\n").map((line) => line.slice(2));
  return createElement(
    "ul",
    null,
    ...items.map((item) => createElement("li", null, ...showMarks(createElement, item))),
  );
}

function showMarks(createElement: CreateElement, text: string): ReactNode[] {
  // Splitting by a pattern with groups leaves, between two plain texts, what each group caught.
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith("`")) {
      return createElement("code", null, part.slice(1, -1));
    }
    return part.startsWith("**") ? createElement("strong", null, part.slice(2, -2)) : part;
  });
}
