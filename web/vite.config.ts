import { join } from "node:path";
import { defineConfig } from "vite";
import { docsSite } from "./docs/site/plugin.js";
import { compressFiles } from "./vite-plugins.js";

const root = import.meta.dirname;

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
  plugins: [docsSite(), compressFiles()],
  server: { proxy: { "^/(latchkey\\.v1\\.|openapi\\.json)": service } },
});
