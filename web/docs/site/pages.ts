import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dirname, extname, normalize } from "node:path/posix";
import { createApiPage, services } from "../api/reference.js";
import {
  createErrorPages,
  errorLinks,
  errorsFile,
  errorUrl,
  operationsHeading,
  withoutRemedies,
} from "./errors.js";
import { createGroupPage, createHomePage } from "./home.js";
import type { Page } from "./layout.js";
import {
  type Heading,
  type RenderedMarkdown,
  renderMarkdown,
  type Section,
  type Target,
} from "./markdown.js";
import { contentsFile, type NavigationGroup, readContents } from "./navigation.js";

const repository = join(import.meta.dirname, "..", "..", "..");
const protoFile = "gen/proto.md";
const errorsUrl = "/docs/reference/errors";
const readmeFile = "README.md";

/** Returns the URL of an image of the repository. */
type ImageUrl = (file: string) => string;

function readText(file: string): string {
  return readFileSync(join(repository, file), "utf8");
}

/** Renders every page of the site. */
export function createPages(imageUrl: ImageUrl): Page[] {
  const operations = services.flatMap((service) => service.operations);
  const sidebar = readContents(readText(contentsFile));
  const listed = sidebar.flatMap(({ title, links }) =>
    links.map((link) => ({ ...link, group: title })),
  );
  const urls = new Map([
    [contentsFile, "/docs"],
    ...listed.map(({ file, url }) => [file, url] as const),
  ]);

  function render(file: string, text = readText(file)): RenderedMarkdown {
    return renderMarkdown(text, (target) => resolve(file, target));
  }

  /** Resolves a link on the page of a file. */
  function resolve(from: string, target: string): Target {
    if (/^(?:[a-z]+:|\/)/.test(target)) {
      return { url: target };
    }
    const [, path = "", hash = ""] = /^([^#]*)(.*)$/.exec(target) ?? [];
    const file = path === "" ? from : normalize(`${dirname(from)}/${path}`).replace(/\/$/, "");
    if ([".png", ".svg"].includes(extname(file))) {
      return { url: imageUrl(file) };
    }
    const url = file === errorsFile ? errorUrl(hash) : undefined;
    const page = urls.get(file);
    return page === undefined ? { file } : { url: url ?? page + hash };
  }

  function createPage({ file, ...link }: (typeof listed)[number], index: number): Page {
    const text = readText(file);
    const edited = file === errorsFile ? withoutRemedies(text) : text;
    return {
      // The main heading of the README is the name of the project.
      ...render(file, file === readmeFile ? edited.replace(/^# .*/, `# ${link.title}`) : edited),
      ...link,
      sidebar,
      previous: listed[index - 1],
      next: listed[index + 1],
    };
  }

  function createProtoPage(page: Page): Page {
    const { title: group, headings = [] } = page;
    return {
      ...page,
      group,
      kind: "proto",
      sidebar: groupHeadings(headings),
      filter: "names",
      headings: [],
    };
  }

  /** The pages at the start of other URLs, which people shorten. */
  function createParents(pages: readonly Page[]): Page[] {
    const errors = pages.find(({ url }) => url === errorsUrl);
    const groups = sidebar.map((group) => ({
      ...group,
      url: `/docs/${group.title.toLowerCase()}`,
    }));
    return [
      ...groups
        .filter(({ url }) => pages.some((page) => page.url.startsWith(`${url}/`)))
        .map(({ url, markdown }) => createGroupPage(render(contentsFile, markdown), url, sidebar)),
      ...(errors ? [{ ...errors, url: "/docs/errors", parent: errors.url, sections: [] }] : []),
    ];
  }

  const pages = listed.map((link, index) => {
    const page = createPage(link, index);
    return link.file === protoFile ? createProtoPage(page) : page;
  });
  return [
    createHomePage(render(contentsFile), sidebar),
    ...pages,
    ...createParents(pages),
    ...createErrorPages(readText(errorsFile), operations).map(({ title, url, markdown, names }) => {
      const page = render(errorsFile, markdown);
      return {
        ...page,
        title,
        url,
        sidebar: withErrors(sidebar),
        parent: urls.get(errorsFile),
        group: "Errors",
        sections: mergeSections(page.sections, names),
      };
    }),
    createApiPage(),
    {
      url: "/docs/404",
      title: "Page not found",
      summary: "",
      html: '<h1>Page not found</h1><p>This page does not exist, or it is disabled. Start at the <a href="/docs">overview</a>.</p>',
      sidebar,
    },
  ];
}

/** The navigation of a long page: its groups are the headings with headings below them. */
function groupHeadings(headings: readonly Heading[]): NavigationGroup[] {
  const groups: NavigationGroup[] = [];
  const single: Heading[] = [];
  for (const [index, heading] of headings.entries()) {
    if (heading.level === 2) {
      const end = headings.findIndex(({ level }, other) => other > index && level < 3);
      const below = headings.slice(index + 1, end === -1 ? undefined : end);
      if (below.length > 0) {
        groups.push({ ...linkTo(heading), links: below.map(linkTo) });
      } else {
        single.push(heading);
      }
    }
  }
  return [{ title: "Overview", links: single.map(linkTo) }, ...groups];
}

function linkTo({ id, text }: Heading) {
  return { title: text, url: `#${id}` };
}

/** The navigation with every error below the page of all errors. */
function withErrors(sidebar: readonly NavigationGroup[]): NavigationGroup[] {
  return sidebar.map(({ title, links }) => ({
    title,
    links: links.map((link) => (link.url === errorsUrl ? { ...link, children: errorLinks } : link)),
  }));
}

/** The text of the page of an error, as one result of a search. */
function mergeSections(sections: readonly Section[], names: readonly string[]): Section[] {
  const [first, ...others] = sections.filter(({ heading }) => heading.text !== operationsHeading);
  return first
    ? [{ ...first, names, text: [first, ...others].map(({ text }) => text).join(" ") }]
    : [];
}
