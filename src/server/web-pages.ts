import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type Awaitable, whenThere } from "../awaitable.js";
import { type Door, served } from "./door.js";
import type { Exchange } from "./exchange.js";
import type { HeaderList } from "./header-list.js";
import { checkIsRead } from "./http.js";
import { findWebFiles, makeOnce, type WebFile } from "./web-files.js";

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

  function pageFor(exchange: Exchange): (() => Awaitable<void>) | undefined {
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
      return whenThere(page(), () => served);
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
