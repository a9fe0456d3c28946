/**
 * A part of the reference, independent of Markdown and HTML. Its text may
 * contain inline Markdown: `code`, **strong** and [links](#anchor).
 */
export type Block =
  | { readonly kind: "heading"; readonly level: 1 | 2 | 3; readonly text: string }
  | { readonly kind: "paragraph"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] }
  | { readonly kind: "facts"; readonly facts: readonly Fact[] }
  | { readonly kind: "table"; readonly head: readonly string[]; readonly rows: readonly string[][] }
  | { readonly kind: "example"; readonly title: string; readonly json: string };

export type Fact = readonly [name: string, text: string];

export function heading(level: 1 | 2 | 3, text: string): Block {
  return { kind: "heading", level, text };
}

/** A block for each paragraph of a text. */
export function prose(text: string): Block[] {
  return text
    .split("\n\n")
    .filter((part) => part !== "")
    .map((part) => ({ kind: "paragraph", text: part }));
}

/** The anchor of a heading, as Markdown renderers generate it. */
export function anchorOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

export function linkTo(text: string): string {
  return `[${text}](#${anchorOf(text)})`;
}

export function codeOf(text: string): string {
  return `\`${text}\``;
}
