import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import { compactDescriptors } from "./compact-descriptors.js";
import { docsSite } from "./docs/site/plugin.js";

const root = import.meta.dirname;

const compressible = /\.(js|css|svg|json)$/;

/** The service behind the development server. */
const service = "http://localhost:8080";

export default defineConfig({
  root,
  // The content security policy forbids inline assets.
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      onwarn(warning, warn) {
        // Every file of a server-side React library causes this warning.
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") {
          warn(warning);
        }
      },
      input: join(root, "console", "index.html"),
    },
  },
  esbuild: { jsx: "automatic" },
  resolve: { alias: { "node:net": join(root, "node-net-shim.ts") } },
  plugins: [compactDescriptors(), docsSite(), compressFiles()],
  server: { proxy: { "^/(latchkey\\.v1\\.|openapi\\.json)": service } },
});

/** Writes compressed copies of each file, so that the server does not have to compress. */
function compressFiles(): Plugin {
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
    const plain = await readFile(path);
    await Promise.all([
      writeFile(`${path}.br`, await promisify(brotliCompress)(plain)),
      writeFile(`${path}.gz`, await promisify(gzip)(plain, { level: 9 })),
    ]);
  };
}
