import { join } from "node:path";
import { defineConfig } from "vite";
import { compressFiles } from "./compress-files.js";

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
    rollupOptions: {
      onwarn(warning, warn) {
        // Said of every file of a library that also runs on servers.
        if (warning.code !== "MODULE_LEVEL_DIRECTIVE") {
          warn(warning);
        }
      },
      input: [join(root, "console", "index.html")],
    },
  },
  esbuild: { jsx: "automatic" },
  plugins: [compressFiles()],
  server: { proxy: { "^/(latchkey\\.v1\\.|openapi\\.json)": service } },
});
