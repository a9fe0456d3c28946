import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Plugin } from "vite";

const compressible = /\.(js|css|svg|html|json)$/;

/** Writes a gzip copy of each file, so that the server does not have to compress. */
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
