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
      return block.properties.map(([name, text]) => `- **${name}**: ${text}`).join("\n");
    case "table":
      return [block.head, block.head.map(() => "---"), ...block.rows].map(renderRow).join("\n");
    case "example":
      return `${block.title}:\n\n\`\`\`json\n${block.json}\n\`\`\``;
  }
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

/** Renders the body of a page. */
export function toHtml(blocks: readonly Block[]): string {
  return `${blocks.map(renderHtml).join("\n")}\n`;
}

function renderHtml(block: Block): string {
  switch (block.kind) {
    case "heading":
      return element(`h${block.level}`, inline(block.text), ` id="${toAnchor(block.text)}"`);
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
          element("pre", escapeHtml(block.json), ' tabindex="0"'),
      );
  }
}

/** Cells carry the name of their column for the layout on narrow screens. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const top = head.map((text) => element("th", inline(text), ' scope="col"')).join("");
  const body = rows.map((cells) =>
    element(
      "tr",
      cells
        .map((cell, index) => element("td", inline(cell), ` data-column="${head[index]}"`))
        .join(""),
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
    const [match, code, strong, label, target] = mark;
    html += escapeHtml(text.slice(done, mark.index));
    if (code !== undefined) {
      html += element("code", escapeHtml(code));
    } else if (strong !== undefined) {
      html += element("strong", escapeHtml(strong));
    } else {
      html += element("a", escapeHtml(label ?? ""), ` href="${escapeHtml(target ?? "")}"`);
    }
    done = mark.index + match.length;
  }
  return html + escapeHtml(text.slice(done));
}

function element(name: string, content: string, attributes = ""): string {
  return `<${name}${attributes}>${content}</${name}>`;
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
