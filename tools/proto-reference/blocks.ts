/**
 * A part of the reference, independent of Markdown and HTML. Its text may
 * contain inline Markdown: `code`, **strong** and [links](#anchor).
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

export function toMarkdown(blocks: readonly Block[]): string {
  return `${blocks.map(markdownOf).join("\n\n")}\n`;
}

function markdownOf(block: Block): string {
  switch (block.kind) {
    case "heading":
      return `${"#".repeat(block.level)} ${block.text}`;
    case "paragraph":
      return block.text;
    case "list":
      return block.items.map((item) => `- ${item}`).join("\n");
    case "properties":
      return block.properties.map(([name, text]) => `- **${name}**: ${text}`).join("\n");
    case "table":
      return [block.head, block.head.map(() => "---"), ...block.rows].map(rowOf).join("\n");
    case "example":
      return `${block.title}:\n\n\`\`\`json\n${block.json}\n\`\`\``;
  }
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** Renders the body of a page. */
export function toHtml(blocks: readonly Block[]): string {
  return `${blocks.map(htmlOf).join("\n")}\n`;
}

function htmlOf(block: Block): string {
  switch (block.kind) {
    case "heading":
      return element(`h${block.level}`, inline(block.text), ` id="${anchorOf(block.text)}"`);
    case "paragraph":
      return element("p", inline(block.text));
    case "list":
      return element("ul", block.items.map((item) => element("li", inline(item))).join(""));
    case "properties":
      return element(
        "dl",
        block.properties
          .map(([name, text]) => element("dt", inline(name)) + element("dd", inline(text)))
          .join(""),
      );
    case "table":
      return tableOf(block.head, block.rows);
    case "example":
      return element(
        "details",
        element("summary", inline(block.title)) +
          element("pre", escaped(block.json), ' tabindex="0"'),
      );
  }
}

/** Cells carry the name of their column for the layout on narrow screens. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const top = head.map((text) => element("th", inline(text), ' scope="col"')).join("");
  const body = rows.map((cells) =>
    element(
      "tr",
      cells.map((cell, at) => element("td", inline(cell), ` data-column="${head[at]}"`)).join(""),
    ),
  );
  return element(
    "table",
    `<thead>${element("tr", top)}</thead>\n<tbody>\n${body.join("\n")}\n</tbody>`,
  );
}

const marks = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)/g;

/** Renders inline Markdown. */
function inline(text: string): string {
  let html = "";
  let done = 0;
  for (const mark of text.matchAll(marks)) {
    const [whole, code, strong, label, target] = mark;
    html += escaped(text.slice(done, mark.index));
    if (code !== undefined) {
      html += element("code", escaped(code));
    } else if (strong !== undefined) {
      html += element("strong", escaped(strong));
    } else {
      html += element("a", escaped(label ?? ""), ` href="${escaped(target ?? "")}"`);
    }
    done = mark.index + whole.length;
  }
  return html + escaped(text.slice(done));
}

function element(name: string, content: string, attributes = ""): string {
  return `<${name}${attributes}>${content}</${name}>`;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
