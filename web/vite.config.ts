import { join } from "node:path";
import { defineConfig } from "vite";
import { compressFiles } from "./compress-files.js";
import { pageParts } from "./docs/page-parts.js";
import { withoutDataUrls } from "./without-data-urls.js";

const root = import.meta.dirname;

/** The service that pages call while they are being worked on. */
const service = "http://localhost:8080";

export default defineConfig({
  root,
  // The policy of the pages allows scripts, styles and pictures of this host alone: nothing is inlined.
  build: {
    outDir: "../dist/web",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The viewer of the API reference comes as one file.
    chunkSizeWarningLimit: 1600,
    rollupOptions: {
      onwarn(warning, warn) {
        // Said of every file of a library that also runs on servers.
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") {
          warn(warning);
        }
      },
      input: ["console", "docs", "docs/proto"].map((page) => join(root, page, "index.html")),
    },
  },
  esbuild: { jsx: "automatic" },
  resolve: { alias: { "node:net": join(root, "net-in-browsers.ts") } },
  plugins: [pageParts(), withoutDataUrls(/swagger-ui-dist/), compressFiles()],
  server: { proxy: { "^/(latchkey\\.v1\\.|openapi\\.json)": service } },
});
