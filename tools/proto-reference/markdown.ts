import type { Block } from "./blocks.js";

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
    case "facts":
      return block.facts.map(([name, text]) => `- **${name}**: ${text}`).join("\n");
    case "table":
      return [block.head, block.head.map(() => "---"), ...block.rows].map(rowOf).join("\n");
    case "example":
      return `${block.title}:\n\n\`\`\`json\n${block.json}\n\`\`\``;
  }
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
