/**
 * A part of the reference. Its text may contain inline Markdown: `code`,
 * **strong** and [links](#anchor).
 */
export type Block =
  | { readonly kind: "heading"; readonly level: 1 | 2 | 3; readonly text: string }
  | { readonly kind: "paragraph"; readonly text: string }
  | { readonly kind: "list"; readonly items: readonly string[] }
  | { readonly kind: "properties"; readonly properties: readonly Property[] }
  | { readonly kind: "table"; readonly head: readonly string[]; readonly rows: readonly string[][] }
  | { readonly kind: "example"; readonly title: string; readonly json: string };

export type Property = readonly [name: string, text: string];

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
function toAnchor(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}

export function linkTo(text: string): string {
  return `[${text}](#${toAnchor(text)})`;
}

export function inlineCode(text: string): string {
  return `\`${text}\``;
}

export function toMarkdown(blocks: readonly Block[]): string {
  return `${blocks.map(renderMarkdown).join("\n\n")}\n`;
}

function renderMarkdown(block: Block): string {
  switch (block.kind) {
    case "heading":
      return `${"#".repeat(block.level)} ${block.text}`;
    case "paragraph":
      return block.text;
    case "list":
      return block.items.map((item) => `- ${item}`).join("\n");
    case "properties":
      return renderTable(["", ""], block.properties);
    case "table":
      return renderTable(block.head, block.rows);
    case "example":
      return `<details><summary>${block.title}</summary>\n\n\`\`\`json\n${block.json}\n\`\`\`\n\n</details>`;
  }
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map(renderRow).join("\n");
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
