import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type MaybePromise, mapMaybePromise } from "../../lib/async.js";
import { type Exchange, type RequestHandler, unlogged } from "../http/exchange.js";
import { accepts, type HeaderList, toHeaderList } from "../http/headers.js";
import { requireGetOrHead } from "../http/responses.js";

/** The paths of the console, the documentation, and their scripts, styles and images. */
const webPageNames = ["console", "docs", "assets"] as const;
type WebPageName = (typeof webPageNames)[number];

/** Computed once: every request that is not gRPC is compared with these. */
const pagePaths = webPageNames.map((name) => ({ name, at: `/${name}`, below: `/${name}/` }));

/** The links to the console in the documentation. */
const consoleLink = /<a [^>]*href="\/console"[^>]*>[^<]*<\/a>/g;

/** Pages may only load their own files and call this server. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const pageSecurityHeaders = toHeaderList({
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "content-security-policy": policy,
});
const pageHeaders: HeaderList = ["cache-control", "no-store", ...pageSecurityHeaders];
/** The documentation has no secrets, so browsers cache it and revalidate it. */
const docsHeaders: HeaderList = ["cache-control", "no-cache", ...pageSecurityHeaders];
/** The names of assets contain a hash of their content. */
const assetHeaders: HeaderList = ["cache-control", "public, max-age=31536000, immutable"];
const noSniff: HeaderList = ["x-content-type-options", "nosniff"];

interface WebPagesOptions {
  readonly keyHeader: string;
  /** Without the console the documentation remains, because the `type` of errors links to it. */
  readonly hasConsole: boolean;
}

/** The page of a path, if any. */
export function webPageAt(path: string): WebPageName | undefined {
  return pagePaths.find(({ at, below }) => path === at || path.startsWith(below))?.name;
}

/** Serves the web pages and their assets. */
export function createWebPages({ keyHeader, hasConsole }: WebPagesOptions): RequestHandler {
  const files = findWebFiles();
  for (const [path, file] of files) {
    if (path.endsWith(".html")) {
      files.set(path, withKeyHeader(hasConsole ? file : withoutConsole(file), keyHeader));
    }
  }
  const console = findFile(files, "/console/index.html");
  const notFound = findFile(files, "/docs/404.html");

  function sendDocsPage(exchange: Exchange): Promise<void> {
    const page = files.get(`${exchange.path.replace(/\/$/, "")}.html`);
    return page && page !== notFound
      ? sendUnlessUnchanged(exchange, page)
      : sendFile(exchange, notFound, pageHeaders, 404);
  }

  function pageFor(exchange: Exchange): (() => MaybePromise<void>) | undefined {
    const { path } = exchange;
    switch (webPageAt(path)) {
      case "console":
        // Its script shows the page of the path.
        return () =>
          hasConsole
            ? sendFile(exchange, console, pageHeaders)
            : sendFile(exchange, notFound, pageHeaders, 404);
      case "docs":
        return () => sendDocsPage(exchange);
      case "assets": {
        const asset = files.get(path);
        return asset && (() => sendFile(exchange, asset, assetHeaders));
      }
      case undefined:
        return undefined;
    }
  }

  return (exchange) => {
    const page = pageFor(exchange);
    if (page) {
      requireGetOrHead(exchange);
      return mapMaybePromise(page(), () => unlogged);
    }
    return undefined;
  };
}

function findFile(files: ReadonlyMap<string, WebFile>, path: string): WebFile {
  const file = files.get(path);
  if (!file) {
    throw new Error(`The page ${path} is not built. Run npm run build.`);
  }
  return file;
}

/** A page with the configured key header in a meta element. */
function withKeyHeader(file: WebFile, keyHeader: string): WebFile {
  const meta = `<meta name="key-header" content="${keyHeader}">`;
  return edit(file, (html) => html.replace("</head>", `${meta}</head>`));
}

function withoutConsole(file: WebFile): WebFile {
  return edit(file, (html) => html.replaceAll(consoleLink, ""));
}

function edit(file: WebFile, change: (html: string) => string): WebFile {
  const plain = lazy(async () => Buffer.from(change((await file.plain()).toString())));
  const compressed = new Map(
    encodings.map(({ name, compress }) => [name, lazy(async () => compress(await plain()))]),
  );
  const etag = lazy(async () =>
    createHash("sha256")
      .update(await plain())
      .digest(),
  );
  return { type: file.type, plain, compressed, etag };
}

/** Sends a page of the documentation, or 304 if the browser has it. */
async function sendUnlessUnchanged(exchange: Exchange, page: WebFile): Promise<void> {
  // Weak, because it is the same with and without compression.
  const etag = `W/"${(await page.etag?.())?.toString("base64url")}"`;
  const headers = [...docsHeaders, "etag", etag];
  const known = exchange.headers["if-none-match"] ?? "";
  if (known !== "*" && !known.includes(etag.slice(2))) {
    return sendFile(exchange, page, headers);
  }
  exchange.isWebPage = true;
  exchange.send(304, ["vary", "accept-encoding", ...headers]);
}

async function sendFile(
  exchange: Exchange,
  { type, plain, compressed }: WebFile,
  headers: HeaderList,
  status = 200,
): Promise<void> {
  const [encoding, read] = [...compressed].find(([name]) =>
    accepts(exchange.headers["accept-encoding"], name),
  ) ?? [undefined, plain];
  const body = await read();
  exchange.isWebPage = true;
  exchange.send(
    status,
    [
      ...toHeaderList({ "content-type": type, vary: "accept-encoding" }),
      ...(encoding ? ["content-encoding", encoding] : []),
      ...noSniff,
      ...headers,
    ],
    body,
  );
}

interface Encoding {
  readonly name: string;
  readonly extension: string;
  compress(plain: Buffer): Promise<Buffer>;
}

/** The smallest first. The highest quality of Brotli would need seconds for a large page. */
const encodings: readonly Encoding[] = [
  {
    name: "br",
    extension: ".br",
    compress: (plain) =>
      promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  },
  { name: "gzip", extension: ".gz", compress: (plain) => promisify(gzip)(plain) },
];

/** A file, uncompressed and, if the build compressed it, compressed. */
interface WebFile {
  readonly type: string;
  plain(): Promise<Buffer>;
  /** By the name of the encoding, in the order of preference. */
  readonly compressed: ReadonlyMap<string, () => Promise<Buffer>>;
  /** The hash of the content, for a page. */
  readonly etag?: (() => Promise<Buffer>) | undefined;
}

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** The built files by path. */
function findWebFiles(): Map<string, WebFile> {
  const packageFolder = dirname(createRequire(import.meta.url).resolve("latchkey/package.json"));
  const folder = join(packageFolder, "dist", "web");
  const found = existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: "utf8" })
    : [];
  const names = new Set(found);
  const files = new Map<string, WebFile>();
  for (const name of names) {
    const type = types[extname(name)];
    if (type !== undefined) {
      const path = join(folder, name);
      const compressed = new Map(
        encodings
          .filter(({ extension }) => names.has(name + extension))
          .map(({ name: encoding, extension }) => [
            encoding,
            lazy(() => readFile(path + extension)),
          ]),
      );
      files.set(`/${name}`, { type, plain: lazy(() => readFile(path)), compressed });
    }
  }
  return files;
}

/** Loads bytes on first use and shares them between all responses. A failure is retried on the next use. */
function lazy(load: () => Promise<Buffer>): () => Promise<Buffer> {
  let loaded: Promise<Buffer> | undefined;
  return () => {
    loaded ??= load().catch((reason) => {
      loaded = undefined;
      throw reason;
    });
    return loaded;
  };
}
