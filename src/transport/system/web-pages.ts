import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type MaybePromise, mapMaybePromise } from "../../lib/maybe-promise.js";
import { type Door, type Exchange, served } from "../http/exchange.js";
import type { HeaderList } from "../http/headers.js";
import { checkIsRead } from "../http/responses.js";

/**
 * The pages for people, each at a path of its own and with all paths below it
 * that are not those of a page before it.
 */
export const webPageNames = ["console", "docs/proto", "docs"] as const;
type WebPageName = (typeof webPageNames)[number];

/** Where the build puts the scripts, styles and pictures of all pages. */
const assetsPath = "/assets/";

/** Written once, as every call that is not of gRPC passes by here. */
const places = webPageNames.map((name) => ({ name, at: `/${name}`, below: `/${name}/` }));

/** What each page may do: nothing but load its own files from here, and call here. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pageHeaders: HeaderList = [
  ...["cache-control", "no-store"],
  ...["referrer-policy", "no-referrer"],
  ...["cross-origin-opener-policy", "same-origin"],
  ...["content-security-policy", policy],
];
/** The names of such files change with what is in them. */
const assetHeaders: HeaderList = ["cache-control", "public, max-age=31536000, immutable"];
const guessNothing: HeaderList = ["x-content-type-options", "nosniff"];

interface WebPagesOptions {
  readonly keyHeader: string;
}

/** Which of them, or of what belongs to them, a path is of. */
export function webPageAt(path: string): WebPageName | "assets" | undefined {
  if (path.startsWith(assetsPath)) {
    return "assets";
  }
  return places.find(({ at, below }) => path === at || path.startsWith(below))?.name;
}

/** Serves the pages for people and what belongs to them. Takes nothing else. */
export function createWebPages({ keyHeader }: WebPagesOptions): Door {
  const files = findWebFiles();
  const documents = new Map(
    webPageNames.map((name) => [name, createDocument(files, name, keyHeader)]),
  );

  function pageFor(exchange: Exchange): (() => MaybePromise<void>) | undefined {
    const { path } = exchange;
    if (path === "/" && wantsPage(exchange)) {
      return () => exchange.send(302, ["location", "/console"]);
    }
    const name = webPageAt(path);
    if (name === "assets") {
      const asset = files.get(path);
      return asset && (() => sendFile(exchange, asset, assetHeaders));
    }
    return name && (() => sendFile(exchange, documents.get(name) as WebFile, pageHeaders));
  }

  return (exchange) => {
    const page = pageFor(exchange);
    if (page) {
      checkIsRead(exchange);
      return mapMaybePromise(page(), () => served);
    }
    return undefined;
  };
}

/** The page as it was built, told which header keys are sent in. */
function createDocument(
  files: ReadonlyMap<string, WebFile>,
  name: WebPageName,
  keyHeader: string,
): WebFile {
  const file = files.get(`/${name}/index.html`);
  if (!file) {
    throw new Error(`The page ${name} is not built: run npm run build, or set CONSOLE=off.`);
  }
  const plain = makeOnce(async () => {
    const html = (await file.plain()).toString();
    const fact = `<meta name="key-header" content="${keyHeader}">`;
    return Buffer.from(html.replace("</head>", `  ${fact}\n  </head>`));
  });
  const compressed = makeOnce(async () => promisify(gzip)(await plain()));
  return { type: file.type, plain, compressed };
}

async function sendFile(
  exchange: Exchange,
  { type, plain, compressed }: WebFile,
  headers: HeaderList,
): Promise<void> {
  const isCompressed = compressed !== undefined && takesGzip(exchange);
  const body = await (isCompressed ? compressed() : plain());
  exchange.isPage = true;
  exchange.send(
    200,
    [
      ...["content-type", type],
      ...(isCompressed ? ["content-encoding", "gzip"] : []),
      ...["vary", "accept-encoding"],
      ...guessNothing,
      ...headers,
    ],
    body,
  );
}

function takesGzip({ headers }: Exchange): boolean {
  const accepted = String(headers["accept-encoding"] ?? "");
  return /(?:^|,)\s*gzip\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))/i.test(accepted);
}

function wantsPage({ headers }: Exchange): boolean {
  return headers.accept?.includes("text/html") ?? false;
}

/** A file of the pages, as it is and, where it is worth it, compressed. */
interface WebFile {
  readonly type: string;
  plain(): Promise<Buffer>;
  readonly compressed?: (() => Promise<Buffer>) | undefined;
}

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** What the build has made of the pages, by path. */
function findWebFiles(): ReadonlyMap<string, WebFile> {
  const folder = join(packageFolder(), "dist", "web");
  const found = existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: "utf8" })
    : [];
  const names = new Set(found);
  const files = new Map<string, WebFile>();
  for (const name of names) {
    const type = types[extname(name)];
    if (type !== undefined) {
      const path = join(folder, name);
      const zipped = `${name}.gz`;
      const compressed = names.has(zipped)
        ? makeOnce(() => readFile(join(folder, zipped)))
        : undefined;
      files.set(`/${name}`, { type, plain: makeOnce(() => readFile(path)), compressed });
    }
  }
  return files;
}

/**
 * Makes bytes when they are first asked for, as most servers are never asked
 * for pages. All answers share them, however many wait to be read. What failed
 * is tried again.
 */
function makeOnce(make: () => Promise<Buffer>): () => Promise<Buffer> {
  let made: Promise<Buffer> | undefined;
  return () => {
    made ??= make().catch((reason) => {
      made = undefined;
      throw reason;
    });
    return made;
  };
}

/** Sources and what is built of them are at different depths in it. */
function packageFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  return here.replace(/(?:[/\\]dist)?[/\\]src[/\\]transport[/\\]system$/, "");
}
