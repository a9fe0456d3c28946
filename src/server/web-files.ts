import { existsSync, readdirSync } from "node:fs";
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
export function makeOnce(make: () => Promise<Buffer>): () => Promise<Buffer> {
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
  return here.replace(/(?:[/\\]dist)?[/\\]src[/\\]server$/, "");
}
