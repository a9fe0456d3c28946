import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dirname, extname, normalize } from "node:path/posix";
import type { Page } from "./layout.js";
import { type RenderedMarkdown, renderMarkdown, type Target } from "./markdown.js";
import { type ContentsLink, contentsFile, readContents } from "./navigation.js";

const repository = join(import.meta.dirname, "..", "..", "..");

/** Returns the URL of an image of the repository. */
export type ImageUrl = (file: string) => string;

function readText(file: string): string {
  return readFileSync(join(repository, file), "utf8");
}

/** Renders every page of the site. */
export function createPages(imageUrl: ImageUrl): Page[] {
  const sidebar = readContents(readText(contentsFile));
  const listed = sidebar.flatMap(({ links }) => links);
  const urls = new Map([
    [contentsFile, "/docs"],
    ...listed.map(({ file, url }) => [file, url] as const),
  ]);

  function render(file: string): RenderedMarkdown {
    return renderMarkdown(readText(file), (target) => resolve(file, target));
  }

  /** Resolves a link on the page of a file. */
  function resolve(from: string, target: string): Target {
    const [, path = "", hash = ""] = /^([^#]*)(#.*)?$/.exec(target) ?? [];
    if (path === "" || /^(?:[a-z]+:|\/)/.test(path)) {
      return { url: target };
    }
    const file = normalize(`${dirname(from)}/${path}`).replace(/\/$/, "");
    if ([".png", ".svg"].includes(extname(file))) {
      return { url: imageUrl(file) };
    }
    const url = urls.get(file);
    return url === undefined ? { file } : { url: url + hash };
  }

  function createPage({ file, url, title, summary }: ContentsLink, index: number): Page {
    return {
      ...render(file),
      title,
      summary,
      url,
      sidebar,
      previous: listed[index - 1],
      next: listed[index + 1],
    };
  }

  const home = render(contentsFile);
  return [
    // Each item of its lists is shown as a card with a title and a text.
    { ...home, html: home.html.replaceAll("</a>: ", "</a> "), url: "/docs", sidebar, kind: "home" },
    ...listed.map(createPage),
    {
      url: "/docs/api",
      title: "API reference",
      summary: "Every operation of the REST API.",
      html: readText("web/docs/api/content.html"),
      sidebar,
      kind: "api",
      script: "docs/api/main.ts",
    },
    {
      url: "/docs/404",
      title: "Page not found",
      summary: "",
      html: '<h1>Page not found</h1><p>The documentation has no such page. Start at the <a href="/docs">overview</a>.</p>',
      sidebar,
    },
  ];
}
