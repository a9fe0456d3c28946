import { dirname, normalize } from "node:path/posix";

interface Endpoint {
  readonly method: string;
  readonly path: string;
}

export interface NavigationLink {
  readonly title: string;
  readonly url: string;
  /** The HTTP method and path, for an operation of the API. */
  readonly endpoint?: Endpoint | undefined;
  readonly children?: readonly NavigationLink[] | undefined;
}

export interface NavigationGroup {
  readonly title: string;
  readonly url?: string | undefined;
  readonly links: readonly NavigationLink[];
}

/** A page of the contents. */
interface ContentsLink extends NavigationLink {
  /** The path in the repository. */
  readonly file: string;
  readonly summary: string;
}

interface ContentsGroup {
  readonly title: string;
  /** The part of the contents, as a page. */
  readonly markdown: string;
  readonly links: readonly ContentsLink[];
}

export const contentsFile = "docs/README.md";

const groupHeading = /^## (.+)$/m;
const listedLink = /^- \[(.+?)\]\((.+?)\): (.+)$/gm;

/** The groups and pages that the contents page lists, in order. */
export function readContents(contents: string): ContentsGroup[] {
  const [, ...parts] = contents.split(groupHeading);
  return parts.flatMap((title, index) => {
    const text = parts[index + 1] ?? "";
    const links = [...text.matchAll(listedLink)].map(createLink);
    return index % 2 === 0 ? [{ title, markdown: `# ${title}${text}`, links }] : [];
  });
}

function createLink([, title = "", href = "", summary = ""]: RegExpExecArray): ContentsLink {
  const file = normalize(`${dirname(contentsFile)}/${href}`);
  return { title, file, url: urlOf(file), summary: summary.replaceAll("`", "") };
}

/** Pages whose URL does not follow from their path. */
const urls: Readonly<Record<string, string>> = {
  "README.md": "/docs/get-started",
  "gen/proto.md": "/docs/proto",
};

function urlOf(file: string): string {
  const path = file.replace(/^docs\//, "").replace(/(?:\/README)?\.md$/, "");
  return urls[file] ?? `/docs/${path.toLowerCase()}`;
}
