import MarkdownIt, { type StateCore, type Token } from "markdown-it";
import { highlight } from "../../common/highlight.js";
import { createCallTabs } from "./call-tabs.js";

/** A heading with its anchor. */
export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
}

/** The text below a heading, for search. */
export interface Section {
  readonly heading: Heading;
  readonly text: string;
  /** The parameters and fields of an operation, or the status and title of an error. */
  readonly names?: readonly string[] | undefined;
  /** The method and path of an operation. */
  readonly endpoint?: string | undefined;
}

export interface RenderedMarkdown {
  readonly title: string;
  /** The first paragraph. */
  readonly summary: string;
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly Section[];
}

/** The URL of a link or image, or the path of a file that is not on the site. */
export type Target = { readonly url: string } | { readonly file: string };
type ResolveLink = (target: string) => Target;

/**
 * The code blocks after this comment show the same in several languages. Some can be inside a
 * details element, which GitHub shows closed. With a call in the comment, the site adds them.
 */
const tabsComment = "<!-- tabs -->";
const tabLabels: Readonly<Record<string, string>> = {
  sh: "curl",
  js: "TypeScript",
  ts: "TypeScript",
  go: "Go",
  python: "Python",
  typescript: "TypeScript",
};

const markdown = createMarkdown({ html: true });
markdown.core.ruler.push("links", resolveLinks);
markdown.core.ruler.push("alignment", alignByClass);
markdown.core.ruler.push("labels", labelCells);
markdown.core.ruler.push("anchors", addAnchors);
markdown.core.ruler.push("rows", addRowAnchors);
markdown.core.ruler.push("tabs", groupTabs);
markdown.core.ruler.push("outputs", markOutputs);
markdown.renderer.rules.fence = (tokens, index) => renderCode(tokens[index] as Token);
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
markdown.renderer.rules.table_close = () => "</table></div>\n";

/** Creates a renderer that does not break the lines of short code, such as `--port`. */
export function createMarkdown(options: { readonly html?: boolean } = {}) {
  const created = new MarkdownIt(options);
  created.renderer.rules.code_inline = (tokens, index) => {
    const { content = "" } = tokens[index] ?? {};
    const attributes = content.length <= 24 ? ' class="short"' : "";
    return `<code${attributes}>${created.utils.escapeHtml(content)}</code>`;
  };
  return created;
}

export function renderMarkdown(source: string, resolve: ResolveLink): RenderedMarkdown {
  const headings: Heading[] = [];
  const tokens = markdown.parse(source, { resolve, headings });
  const paragraph = tokens.findIndex(({ type }) => type === "paragraph_open");
  return {
    title: headings[0]?.text ?? "",
    summary: textOf(tokens[paragraph + 1]),
    html: markdown.renderer.render(tokens, markdown.options, {}),
    headings,
    sections: splitSections(tokens, headings),
  };
}

/** Gives each heading an id, and links it to itself. */
function addAnchors({ tokens, env, Token }: StateCore): void {
  const headings = env.headings as Heading[];
  for (const [index, token] of tokens.entries()) {
    const content = tokens[index + 1];
    if (token.type === "heading_open" && content) {
      const text = textOf(content);
      const anchor = toAnchor(text);
      const count = headings.filter((heading) => toAnchor(heading.text) === anchor).length;
      const id = count > 0 ? `${anchor}-${count}` : anchor;
      headings.push({ level: Number(token.tag.slice(1)), id, text });
      token.attrSet("id", id);
      linkToAnchor(Token, content, id);
    }
  }
}

/** The columns whose names have an anchor, and their own results in the search. */
const namedColumns = ["Command", "Metric", "Setting"];

/** Gives each row of such a column an id, and links its name, without arguments, to it. */
function addRowAnchors({ tokens, Token }: StateCore): void {
  for (const [index, row] of tokens.entries()) {
    const [cell, content] = tokens.slice(index + 1);
    const [name, ...others] = content?.children ?? [];
    if (
      row.type === "tr_open" &&
      namedColumns.includes(String(cell?.attrGet("data-column"))) &&
      name?.type === "code_inline" &&
      others.length === 0
    ) {
      const text = name.content.replaceAll(/ [A-Z-]+/g, "");
      const id = toAnchor(text);
      row.attrSet("id", id);
      row.meta = { level: rowLevel, id, text } satisfies Heading;
      linkToAnchor(Token, content as Token, id);
    }
  }
}

/** Below every heading. */
const rowLevel = 7;

function linkToAnchor(TokenType: StateCore["Token"], content: Token, id: string): void {
  const open = new TokenType("link_open", "a", 1);
  open.attrSet("class", "anchor");
  open.attrSet("href", `#${id}`);
  content.children = [open, ...(content.children ?? []), new TokenType("link_close", "a", -1)];
}

/** The anchor of a heading, as GitHub creates it. */
function toAnchor(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** Resolves links and images. A link to a file that is not on the site becomes its path. */
function resolveLinks({ tokens, env, Token }: StateCore): void {
  const resolve = env.resolve as ResolveLink;
  for (const block of tokens) {
    if (block.type === "html_block" && block.content.startsWith("<picture>")) {
      block.content = resolvePicture(block.content, resolve);
    }
    let missing: string | undefined;
    block.children = (block.children ?? []).flatMap((token, index, all) => {
      const attribute = token.type === "image" ? "src" : "href";
      const target = token.attrGet(attribute);
      if (target !== null) {
        const resolved = resolve(String(target));
        if ("file" in resolved) {
          missing = resolved.file;
          return [];
        }
        token.attrSet(attribute, resolved.url);
        if (token.type === "image") {
          return linkImage(Token, token, resolved.url);
        }
      } else if (token.type === "link_close" && missing !== undefined) {
        const file = missing;
        missing = undefined;
        return file.endsWith(all[index - 1]?.content ?? "") ? [] : createPath(Token, file);
      }
      return [token];
    });
  }
}

/** Resolves the images for both themes, and links the light one. */
function resolvePicture(html: string, resolve: ResolveLink): string {
  let url = "";
  const resolved = html.replaceAll(/\b(src|srcset)="([^"]*)"/g, (_, name, target) => {
    const image = resolve(target);
    url = "url" in image ? image.url : "";
    return `${name}="${url}"`;
  });
  return `<a class="image" href="${url}">${resolved.trim()}</a>\n`;
}

/** Links an image to its file, to see it in full size. */
function linkImage(TokenType: StateCore["Token"], image: Token, url: string): Token[] {
  const open = new TokenType("link_open", "a", 1);
  open.attrs = [
    ["class", "image"],
    ["href", url],
  ];
  return [open, image, new TokenType("link_close", "a", -1)];
}

/** The content security policy forbids the style attributes of aligned columns. */
function alignByClass({ tokens }: StateCore): void {
  for (const token of tokens) {
    if (token.attrGet("style") === "text-align:right") {
      token.attrs = [["class", "right"]];
    }
  }
}

/** Names the column of each cell, because narrow screens show cells below each other. */
function labelCells({ tokens }: StateCore): void {
  let columns: string[] = [];
  let column = 0;
  for (const [index, token] of tokens.entries()) {
    if (token.type === "table_open") {
      columns = [];
    } else if (token.type === "th_open") {
      columns.push(textOf(tokens[index + 1]));
    } else if (token.type === "tr_open") {
      column = 0;
    } else if (token.type === "td_open") {
      token.attrSet("data-column", columns[column++] ?? "");
    }
  }
}

/** A path in parentheses, after the text of the link. */
function createPath(TokenType: StateCore["Token"], file: string): Token[] {
  const open = Object.assign(new TokenType("text", "", 0), { content: " (" });
  const path = Object.assign(new TokenType("code_inline", "code", 0), { content: file });
  const close = Object.assign(new TokenType("text", "", 0), { content: ")" });
  return [open, path, close];
}

const tabsEnd = "</div>\n";

/** Wraps the code blocks after each tabs comment, and removes other comments. */
function groupTabs(state: StateCore): void {
  const html = (content: string) =>
    Object.assign(new state.Token("html_block", "", 0), { content });
  let isInTabs = false;
  let added: Token[] = [];
  state.tokens = [...state.tokens, html("")].flatMap((token) => {
    const isHtml = token.type === "html_block";
    const samples = isHtml ? createCallTabs(token.content) : undefined;
    if (isHtml && (samples || token.content.trim() === tabsComment)) {
      isInTabs = true;
      added = (samples ?? []).map(({ language, code }) =>
        Object.assign(new state.Token("fence", "", 0), {
          content: `${code}\n`,
          info: language,
          meta: { tab: tabLabels[language], isAdded: true },
        }),
      );
      return [html('<div class="tabs">\n')];
    }
    if (isHtml && (isInTabs ? /^<(?:!--|\/?details)/ : /^<!--/).test(token.content)) {
      return [];
    }
    if (isInTabs && token.type === "fence") {
      token.meta = { tab: tabLabels[token.info] };
      const others = added;
      added = [];
      if (others.length > 0) {
        isInTabs = false;
        return [token, ...others, html(tabsEnd)];
      }
      return [token];
    }
    const end = isInTabs ? [html(tabsEnd)] : [];
    isInTabs = false;
    return [...end, token];
  });
}

/** Marks blocks that show the output of the command above them. */
function markOutputs({ tokens }: StateCore): void {
  for (const [index, token] of tokens.entries()) {
    const previous = tokens[index - 1];
    const isCommand = previous?.type === "fence" && previous.info === "sh";
    const isTabs = previous?.type === "html_block" && previous.content === tabsEnd;
    if ((isCommand || isTabs) && /^(json|text)$/.test(token.info)) {
      token.meta = { isOutput: true };
    }
  }
}

function renderCode({ content, info, meta }: Token): string {
  const label = meta?.tab ? `<p class="code-label">${meta.tab}</p>` : "";
  const kind = [
    "code",
    ...(meta?.isOutput ? ["output"] : []),
    // Output of a program: the address and the key header in it do not change.
    ...(info === "text" ? ["printed"] : []),
  ].join(" ");
  return `<div class="${kind}">${label}<pre tabindex="0"><code>${highlight(content, info)}</code></pre></div>\n`;
}

interface SectionTexts {
  readonly heading: Heading;
  readonly texts: string[];
}

function splitSections(tokens: readonly Token[], headings: readonly Heading[]): Section[] {
  const sections: SectionTexts[] = [];
  const rows: SectionTexts[] = [];
  let isInRow = false;
  for (const [index, token] of tokens.entries()) {
    const texts = (isInRow ? rows : sections).at(-1)?.texts;
    const heading = headings[sections.length];
    if (token.type === "heading_open" && heading) {
      sections.push({ heading, texts: [] });
    } else if (token.type === "tr_open" && token.meta) {
      rows.push({ heading: token.meta as unknown as Heading, texts: [] });
      isInRow = true;
    } else if (token.type === "tr_close") {
      isInRow = false;
    } else if (token.type === "inline" && !isName(tokens, index)) {
      texts?.push(textOf(token));
    } else if (token.type === "fence" && !token.meta?.isAdded) {
      texts?.push(token.content);
    }
  }
  return [
    ...sections.map(({ heading, texts }) => ({ heading, text: texts.join(" ") })),
    ...rows.map(({ heading, texts }) => ({ heading, text: texts.filter(Boolean).join(" · ") })),
  ];
}

/** Whether a text is that of a heading, or the name of a row. */
function isName(tokens: readonly Token[], index: number): boolean {
  return tokens[index - 1]?.type === "heading_open" || Boolean(tokens[index - 2]?.meta);
}

/** The text of an inline token, without markup. */
function textOf(token: Token | undefined): string {
  return (token?.children ?? [])
    .map(({ type, content }) => (/break|html/.test(type) ? " " : content))
    .join("");
}
