import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { OutputBundle, PluginContext } from "rollup";
import type { Plugin } from "vite";
import { apiScript } from "../api/reference.js";
import { type Page, type PageAssets, renderPage } from "./layout.js";
import { createPages } from "./pages.js";
import { createSearchIndex } from "./search-index.js";

const web = join(import.meta.dirname, "..", "..");
const logo = "web/common/latchkey.svg";
const defaultScript = "docs/main.ts";

/** Builds the documentation site from the Markdown files of the repository. */
export function docsSite(): Plugin {
  const scripts = new Map<string, string>();
  return {
    name: "docs-site",
    configureServer(server) {
      // Rendered for each request, so that changes of the text show after a reload.
      server.middlewares.use(async ({ url = "" }, response, next) => {
        const pages = createPages((file) => `/@fs${join(web, "..", file)}`);
        const page = pages.find((page) => page.url === url);
        const searchIndex = "/docs/search.json";
        if (url === searchIndex) {
          response.end(createSearchIndex(pages));
        } else if (page) {
          const { script = defaultScript } = page;
          const assets = {
            script: `/${script}`,
            styles: [],
            logo: "/common/latchkey.svg",
            searchIndex,
          };
          response.setHeader("content-type", "text/html");
          response.end(await server.transformIndexHtml(url, renderPage(page, assets)));
        } else {
          next();
        }
      });
    },
    buildStart() {
      // The development server builds no files.
      if (this.meta.watchMode) {
        return;
      }
      for (const name of [defaultScript, apiScript]) {
        scripts.set(name, this.emitFile({ type: "chunk", id: join(web, name), name: "docs" }));
      }
    },
    generateBundle(_, bundle) {
      const emit = createEmit(this);
      const pages = createPages(emit);
      const logoUrl = emit(logo);
      const index = {
        type: "asset",
        name: "search.json",
        source: createSearchIndex(pages),
      } as const;
      const searchIndex = `/${this.getFileName(this.emitFile(index))}`;
      const assetsOf = ({ script = defaultScript }: Page): PageAssets => {
        const file = this.getFileName(scripts.get(script) as string);
        return {
          script: `/${file}`,
          styles: stylesOf(bundle, file).map((style) => `/${style}`),
          logo: logoUrl,
          searchIndex,
        };
      };
      for (const page of pages) {
        this.emitFile({
          type: "asset",
          fileName: `${page.url.slice(1)}.html`,
          source: renderPage(page, assetsOf(page)),
        });
      }
    },
  };
}

/** Adds a file of the repository to the assets, and returns its URL. */
function createEmit(context: PluginContext): (file: string) => string {
  return (file) => {
    const source = readFileSync(join(web, "..", file));
    const reference = context.emitFile({ type: "asset", name: basename(file), source });
    return `/${context.getFileName(reference)}`;
  };
}

/** The styles of a chunk and of the chunks that it imports. */
function stylesOf(bundle: OutputBundle, file: string, seen = new Set<string>()): string[] {
  const chunk = bundle[file];
  if (chunk?.type !== "chunk" || seen.has(file)) {
    return [];
  }
  seen.add(file);
  const imported = chunk.imports.flatMap((name) => stylesOf(bundle, name, seen));
  return [...new Set([...imported, ...(chunk.viteMetadata?.importedCss ?? [])])];
}
