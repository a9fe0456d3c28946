import { createMarkdown } from "../site/markdown.js";

const markdown = createMarkdown();

/** Text of the OpenAPI document. */
export function Markdown({ text }: { readonly text: string }) {
  const html = markdown.render(text);
  // biome-ignore lint/security/noDangerouslySetInnerHtml: the renderer escapes HTML.
  return html !== "" && <div className="text" dangerouslySetInnerHTML={{ __html: html }} />;
}
