import { readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Plugin } from "vite";

const here = import.meta.dirname;
const headerFile = join(here, "docs", "top.html");
const protoReference = join(here, "..", "gen", "proto.html");

/** Includes the shared header and the generated proto reference in the docs pages. */
export function htmlIncludes(): Plugin {
  return {
    name: "html-includes",
    transformIndexHtml: {
      order: "pre",
      handler: (html, { path }) =>
        html
          .replace("<!-- top -->", () => headerFor(path.replace(/\/index\.html$/, "")))
          .replace("<!-- proto reference -->", () => readFileSync(protoReference, "utf8")),
    },
  };
}

/** The header with the link to the current page marked. */
function headerFor(page: string): string {
  const own = `href="${page}"`;
  return readFileSync(headerFile, "utf8").trimEnd().replace(own, `${own} aria-current="page"`);
}

/** Not HTML: the server inserts values into it and compresses the result. */
const compressible = /\.(js|css|svg)$/;

/** Writes a gzip copy of each asset, so that the server does not have to compress. */
export function compressFiles(): Plugin {
  return {
    name: "compress-files",
    apply: "build",
    async writeBundle({ dir = "" }) {
      const names = await readdir(dir, { recursive: true });
      await Promise.all(names.filter((name) => compressible.test(name)).map(compressIn(dir)));
    },
  };
}

function compressIn(folder: string): (name: string) => Promise<void> {
  return async (name) => {
    const path = join(folder, name);
    const compressed = await promisify(gzip)(await readFile(path), { level: 9 });
    await writeFile(`${path}.gz`, compressed);
  };
}

const dataUrl = /url\((?:"data:(?:[^"\\]|\\.)*"|data:[^)]*)\)/g;

/** Removes data: images from library styles, because the content security policy forbids them. */
export function removeDataUrls(library: RegExp): Plugin {
  return {
    name: "remove-data-urls",
    enforce: "pre",
    transform: (code, id) =>
      library.test(id) && id.endsWith(".css")
        ? { code: code.replace(dataUrl, "none"), map: null }
        : null,
  };
}
