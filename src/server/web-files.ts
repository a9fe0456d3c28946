import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file of the pages, as it is and, where it is worth it, compressed. */
export interface WebFile {
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
export function findWebFiles(): ReadonlyMap<string, WebFile> {
  const folder = join(packageFolder(), "dist", "web");
  const names = new Set(readdirSync(folder, { recursive: true, encoding: "utf8" }));
  const files = new Map<string, WebFile>();
  for (const name of names) {
    const type = types[extname(name)];
    if (type !== undefined) {
      const path = join(folder, name);
      const zipped = `${name}.gz`;
      const compressed = names.has(zipped) ? readOnce(join(folder, zipped)) : undefined;
      files.set(`/${name}`, { type, plain: readOnce(path), compressed });
    }
  }
  return files;
}

/** Reads a file when it is first asked for: most servers are never asked for pages. */
function readOnce(path: string): () => Promise<Buffer> {
  let content: Promise<Buffer> | undefined;
  return () => {
    content ??= readFile(path);
    return content;
  };
}

/** Sources and what is built of them are at different depths in it. */
function packageFolder(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  return here.replace(/(?:[/\\]dist)?[/\\]src[/\\]server$/, "");
}
